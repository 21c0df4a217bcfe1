"""The augmented seen set: further images of the seen classes, one half for validation, the other for reporting.

`seen_val` serves calibration and model selection, `seen_test` the reported numbers.
Halves are drawn with the seed, or follow published lists; a clean variant drops from published lists every image
whose content is among the training images, and from the validation half what the test half holds too.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import torch

from repro.data.seeding import generator
from repro.errors import BadInput

# drawn: with the seed. published: exactly the lists. clean: the lists without images seen in training.
ExtraVariant = Literal["drawn", "published", "clean"]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Halves(Generic[Item]):
    """The augmented seen images of one class or of all, by role."""

    seen_val: list[Item]
    seen_test: list[Item]

    def by_role(self) -> dict[str, list[Item]]:
        """Role → images."""
        return {"seen_val": self.seen_val, "seen_test": self.seen_test}


def shuffled(items: Sequence[Item], seed: int, *purpose: str) -> list[Item]:
    """The items in a random order that depends on seed, purpose and the given order alone."""
    order = torch.randperm(len(items), generator=generator(seed, "images", *purpose)).tolist()
    return [items[place] for place in order]


def two_halves(extra: Sequence[Item]) -> Halves[Item]:
    """Split in two; the reported half gets the odd one (15 images: 7 for validation, 8 for test)."""
    middle = len(extra) // 2
    return Halves(seen_val=list(extra[:middle]), seen_test=list(extra[middle:]))


def merge_halves(halves: Iterable[Halves[Item]]) -> Halves[Item]:
    """The halves of several classes as one."""
    listed = list(halves)
    return Halves(
        seen_val=[item for each in listed for item in each.seen_val],
        seen_test=[item for each in listed for item in each.seen_test],
    )


def among_training(extra: Iterable[Item], train: Iterable[Item], content: Mapping[Item, Hashable]) -> set[Item]:
    """The extra images that are training images, or whose `content` (known where two images share it) is one's."""
    training = set(train)
    contents = {content[item] for item in training if item in content}
    return {item for item in extra if item in training or (item in content and content[item] in contents)}


def cleaned(halves: Halves[Item], train: Sequence[Item], content: Mapping[Item, Hashable]) -> Halves[Item]:
    """Drop what is among the training images, and from the validation half what the test half has."""
    dropped = among_training([*halves.seen_val, *halves.seen_test], train, content)
    test = [item for item in halves.seen_test if item not in dropped]
    dropped |= among_training(halves.seen_val, test, content)
    return Halves(seen_val=[item for item in halves.seen_val if item not in dropped], seen_test=test)


def draw_extra(
    candidates: Mapping[str, Sequence[Item]],
    train: Sequence[Item],
    content: Mapping[Item, Hashable],
    *,
    sizes: tuple[int, int],
    seed: int,
) -> dict[str, Halves[Item]]:
    """Draw both halves of each class: no image among the training images, no content twice. Raises BadInput.

    `sizes` says how many images of a class seen_val and seen_test get.
    """
    taken = set(train)
    contents = {content[item] for item in train if item in content}
    drawn = {}
    for class_name, images in candidates.items():
        free = []
        for item in images:
            if item not in taken and not (item in content and content[item] in contents):
                free.append(item)
                contents |= {content[item]} if item in content else set()
        if len(free) < sum(sizes):
            message = f"class {class_name} has {len(free)} images besides the training images"
            raise BadInput(f"{message}, expected {sum(sizes)} for seen_val and seen_test; ask for fewer extra images")
        chosen = shuffled(free, seed, "extra", class_name)
        drawn[class_name] = Halves(seen_val=chosen[: sizes[0]], seen_test=chosen[sizes[0] : sum(sizes)])
    return drawn


def hold_out(
    seen: Mapping[str, Sequence[Item]], content: Mapping[Item, Hashable], *, sizes: tuple[int, int], seed: int
) -> dict[Item, str]:
    """Draw both halves from the seen classes' own images: image → role. Raises BadInput.

    An image whose `content` (known where two images share it) occurs twice stays in training.
    """
    once = {name: [item for item in images if item not in content] for name, images in seen.items()}
    halves = draw_extra(once, [], {}, sizes=sizes, seed=seed)
    return {item: role for each in halves.values() for role, members in each.by_role().items() for item in members}
