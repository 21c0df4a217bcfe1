"""Seen, validation and test classes: drawn with the seed or read from lists, and the one label order.

Labels count the seen classes first, then the validation classes, then the test classes, each sorted by name. Val and
test classes are both unseen; they never meet in one task.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from repro.data.dataset import SPLITS, ClassInfo
from repro.data.seeding import generator
from repro.errors import BadInput


@dataclass(frozen=True)
class SplitSizes:
    """How many classes each split has."""

    seen: int
    val: int
    test: int

    def of(self, split: str) -> int:
        """Number of classes of `split`."""
        return {"seen": self.seen, "val": self.val, "test": self.test}[split]


def split_sizes(classes: Sequence[int]) -> SplitSizes:
    """Read [seen, val, test] as given in params; raises BadInput for anything but three positive numbers."""
    if len(classes) != len(SPLITS) or min(classes) < 1:
        raise BadInput(f"classes is {list(classes)}, expected three positive numbers [seen, val, test]")
    return SplitSizes(*classes)


def label_order(classes: Iterable[ClassInfo]) -> tuple[ClassInfo, ...]:
    """Sort classes by split (seen, val, test), then by name: a class's place is its label."""
    listed = list(classes)
    check_disjoint({split: [info.name for info in listed if info.split == split] for split in SPLITS})
    return tuple(sorted(listed, key=lambda info: (SPLITS.index(info.split), info.name)))


def check_disjoint(members: Mapping[str, Collection[str]]) -> None:
    """Raise BadInput where a name occurs in two of the lists or twice in one."""
    counts = Counter(name for names in members.values() for name in names)
    shared = sorted(name for name, count in counts.items() if count > 1)
    if shared:
        homes = [listed for listed, names in members.items() if shared[0] in names]
        message = f"{shared[0]} is in the lists {' and '.join(homes)}" if len(homes) > 1 else f"{shared[0]} is twice"
        where = message if len(homes) > 1 else f"{message} in the list {homes[0]}"
        raise BadInput(f"{where} ({len(shared)} such entries), expected lists that do not overlap; correct the lists")


def draw_classes(
    images: Mapping[str, int], sizes: SplitSizes, needed: Mapping[str, int], seed: int, *purpose: str
) -> dict[str, str]:
    """Draw the classes of each split at random: class → split.

    `images` counts each class's images and `needed` says how many a class of a split must have; seen classes, which
    need most, are drawn first. Raises BadInput where too few classes have enough images.
    """
    names = sorted(images)
    order = torch.randperm(len(names), generator=generator(seed, "classes", *purpose)).tolist()
    left = [names[place] for place in order]
    split_of: dict[str, str] = {}
    for split in SPLITS:
        fit = [name for name in left if images[name] >= needed[split]]
        if len(fit) < sizes.of(split):
            richest = max((images[name] for name in left), default=0)
            raise BadInput(
                f"{' '.join(purpose)}: {len(fit)} of {len(left)} classes left have the {needed[split]} images that a "
                f"{split} class needs (the largest has {richest}), expected {sizes.of(split)} such classes; "
                "ask for fewer classes or fewer images per class"
            )
        chosen = fit[: sizes.of(split)]
        split_of |= dict.fromkeys(chosen, split)
        left = [name for name in left if name not in split_of]
    return split_of


def check_supercategories(classes: Iterable[ClassInfo]) -> None:
    """Raise BadInput where a super-category has classes in two splits; TieredImageNet's have not."""
    listed = list(classes)
    check_disjoint({split: {info.supercategory for info in listed if info.split == split} for split in SPLITS})
