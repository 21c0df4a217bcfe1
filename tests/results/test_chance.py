"""A method that learnt nothing is warned of; one that learnt something is not."""

from repro.results.chance import chance_warnings


def test_an_accuracy_that_guessing_reaches_is_warned_of() -> None:
    (said,) = chance_warnings("mini-castle-1shot", {"s_s": (1.5625, 0.0), "u_u": (44.0, 0.4)}, seen=64, way=5)
    assert said.startswith("mini-castle-1shot: S→S is 1.56 ± 0.00 at 5 ways, and guessing among 64 classes gives 1.56")
    assert len(chance_warnings("x", {"s_s": (1.8, 0.5), "u_u": (20.1, 0.2)}, seen=64, way=5)) == 2


def test_better_than_guessing_is_no_warning() -> None:
    assert not chance_warnings("x", {"s_s": (2.2, 0.5), "u_u": (21.0, 0.9)}, seen=64, way=5)
