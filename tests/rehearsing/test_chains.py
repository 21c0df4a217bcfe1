"""Serial time, places side by side, and the longest chain."""

from tools.rehearsing.chains import Job, longest_chain, side_by_side

A: Job = ("splits", "a", 0)
B: Job = ("pretrain", "b", 0)
C: Job = ("train", "c", 0)
D: Job = ("train", "d", 0)
SECONDS = {A: 1.0, B: 4.0, C: 2.0, D: 3.0}
NEEDS: dict[Job, list[Job]] = {A: [], B: [A], C: [B], D: [A]}


def test_one_place_takes_the_sum() -> None:
    assert side_by_side(SECONDS, NEEDS, 1) == 10.0


def test_two_places_work_on_what_is_ready() -> None:
    assert side_by_side(SECONDS, NEEDS, 2) == 7.0  # a, then b beside d, then c


def test_no_number_of_places_goes_below_the_longest_chain() -> None:
    seconds, chain = longest_chain(SECONDS, NEEDS)
    assert (seconds, chain) == (7.0, [A, B, C])
    assert side_by_side(SECONDS, NEEDS, 100) == seconds


def test_nothing_takes_no_time() -> None:
    assert side_by_side({}, {}, 3) == 0.0
    assert longest_chain({}, {}) == (0.0, [])
