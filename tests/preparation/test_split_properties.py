"""Drawn datasets, whatever their sizes: every class in one split, every image in one role, none lost, none twice."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.data.dataset import SPLIT_OF_ROLE, SPLITS, ClassInfo
from repro.preparation.collection import NO_DOMAIN
from repro.preparation.images import RawImage
from repro.preparation.pools import Draw, draw_dataset
from repro.preparation.splits import SplitSizes, label_order

few = settings(max_examples=30)


def pools(domains: int, classes: int, images: int) -> dict[str, dict[str, list[RawImage]]]:
    """Images that all differ, in memory."""
    names = [NO_DOMAIN] if domains == 1 else [f"d{number}" for number in range(domains)]
    return {
        domain: {f"c{c}": [image(f"{domain}/c{c}/{n}") for n in range(images)] for c in range(classes)}
        for domain in names
    }


def image(name: str) -> RawImage:
    return RawImage(name.encode(), name)


@few
@given(
    sizes=st.tuples(*[st.integers(1, 3)] * 3).map(lambda sizes: SplitSizes(*sizes)),
    spare=st.integers(0, 3),
    extra=st.integers(2, 6),
    per_class=st.none() | st.integers(1, 4),
    domains=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_drawn_datasets_are_disjoint_and_complete(
    sizes: SplitSizes, spare: int, extra: int, per_class: int | None, domains: int, seed: int
) -> None:
    images, draw = 12, Draw(extra=extra, per_class=per_class)
    raw = pools(domains, sizes.seen + sizes.val + sizes.test + spare, images)
    rule = "none" if domains == 1 else "per_image"
    told = {"rule": rule, "sizes": sizes, "draw": draw, "seed": seed, "provenance": {"source": "x"}}
    found = draw_dataset("drawn", raw, **told)  # type: ignore[arg-type]
    split_of = {info.name: info.split for info in found.header.classes}
    assert Counter(split_of.values()) == {split: sizes.of(split) for split in SPLITS}
    sources = [picture.raw.source for picture in found.pictures]
    assert len(set(sources)) == len(sources)
    for picture in found.pictures:
        assert split_of[picture.class_name] == SPLIT_OF_ROLE[picture.role]
        assert picture.raw.source.startswith(f"{picture.domain}/{picture.class_name}/")
    used = Counter((picture.class_name, picture.domain) for picture in found.pictures)
    for (name, _), count in used.items():
        left = images if per_class is None else per_class + (extra if split_of[name] == "seen" else 0)
        assert count == min(left, images)
    assert [p.raw.source for p in draw_dataset("other", raw, **told).pictures] == sources  # type: ignore[arg-type]


@few
@given(names=st.lists(st.text(min_size=1, max_size=4), unique=True, min_size=3, max_size=12), seed=st.randoms())
def test_the_label_order_is_a_permutation_with_seen_first_that_ignores_the_given_order(names: list[str], seed) -> None:
    infos = [ClassInfo(name, SPLITS[place % 3]) for place, name in enumerate(names)]
    ordered = label_order(infos)
    assert sorted(ordered, key=repr) == sorted(infos, key=repr)
    places = [SPLITS.index(info.split) for info in ordered]
    assert places == sorted(places)
    seed.shuffle(infos)
    assert label_order(infos) == ordered


def test_repeated_contents_are_used_once() -> None:
    raw = pools(1, 3, 12)
    classes = raw[NO_DOMAIN]
    classes["c0"] += [RawImage(each.origin, f"copy/{each.source}") for each in classes["c1"][:6]]
    draw = Draw(extra=2, per_class=2)
    found = draw_dataset(
        "x", raw, rule="none", sizes=SplitSizes(1, 1, 1), draw=draw, seed=0, provenance={"source": "x"}
    )
    contents = [picture.raw.origin for picture in found.pictures]
    assert len(set(map(bytes, contents))) == len(contents)  # type: ignore[arg-type]
    assert found.header.provenance["repeated_images_dropped"] == 6


@pytest.mark.parametrize("extra", [0, 1])
def test_too_few_extra_images_are_refused(extra: int) -> None:
    with pytest.raises(ValueError, match="expected at least 2 and 1"):
        Draw(extra=extra).needed()
