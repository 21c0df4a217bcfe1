"""A method's file says how it is called, whom it cites and how figures draw it."""

import pytest

from repro.cards import MethodCard
from repro.methods.castle import Castle
from repro.methods.registry import method_class, method_names


@pytest.mark.parametrize("name", method_names())
def test_what_a_card_says_can_be_shown(name: str) -> None:
    card = method_class(name).own_card()
    assert not card.url or card.url.startswith("https://")
    assert bool(card.url) <= bool(card.citation)


def test_labels_tell_methods_apart() -> None:
    labels = [method_class(name).own_card().label or name for name in method_names()]
    assert len(set(labels)) == len(labels)


def test_a_method_built_on_another_does_not_take_its_name() -> None:
    class Mine(Castle):
        """CASTLE with a change."""

    assert Castle.own_card().label == "CASTLE"
    assert Mine.own_card() == MethodCard()
