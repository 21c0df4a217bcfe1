"""Office-Home (Venkateswara et al., 2017): 65 classes, of which three of the four domains are used (paper, section 5).

Layout: `Clipart/`, `Product/` and `Real World/` with a folder per class. 25 seen, 15 validation and 25 test classes are
drawn; of each seen class 10 images per domain are held out, five for seen_val and five for seen_test.
"""

from collections.abc import Sequence
from pathlib import Path

from repro.errors import BadInput
from repro.preparation.collection import Collection
from repro.preparation.listing import subfolders
from repro.preparation.pools import Draw, domain_rule_of, draw_dataset
from repro.preparation.sources.image_folder import read_classes
from repro.preparation.splits import split_sizes

DOMAINS = ("Clipart", "Product", "Real World")


def collect(
    name: str, seed: int, *, root: str | Path, classes: Sequence[int] = (25, 15, 25), extra: int = 10
) -> Collection:
    """Draw the Office-Home split. Raises BadInput.

    root: folder with Clipart, Product and Real World, each with a folder per class
    classes: [seen, val, test], how many classes each split gets
    extra: images per domain of a seen class that are held out for seen_val and seen_test, half each
    """
    root = Path(root)
    pools = {domain: read_classes(root / folder, root) for domain, folder in _domain_folders(root).items()}
    rule = domain_rule_of(pools, root)
    if rule != "per_image":
        raise BadInput(
            f"{root}: each class is in one domain only, expected the same 65 classes in {', '.join(DOMAINS)}"
        )
    return draw_dataset(
        name,
        pools,
        rule=rule,
        sizes=split_sizes(classes),
        draw=Draw(extra=extra),
        seed=seed,
        provenance={"source": "office_home"},
    )


def _domain_folders(root: Path) -> dict[str, str]:
    """Domain → folder, whichever way `Real World` is spelt."""
    expected = f"the folders {', '.join(DOMAINS)} of Office-Home"
    found = {_plain(folder): folder for folder in subfolders(root, expected)}
    missing = [domain for domain in DOMAINS if _plain(domain) not in found]
    if missing:
        raise BadInput(f"{root}: holds {sorted(found.values())} but not {missing[0]}, expected {expected}")
    return {domain: found[_plain(domain)] for domain in DOMAINS}


def _plain(folder: str) -> str:
    return folder.lower().replace(" ", "").replace("_", "").replace("-", "")
