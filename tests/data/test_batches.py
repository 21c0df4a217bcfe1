"""Training draws: distinct images of the right classes and domains, the same for the same step, checked limits."""

from pathlib import Path

import pytest
import torch

from repro.data.batches import EpisodeBatches, ShuffledBatches
from repro.data.dataset import Dataset, open_dataset
from repro.errors import BadInput
from tests.conftest import write_tiny_dataset


def test_an_epoch_visits_every_training_image_once_and_epochs_differ(tiny: Dataset) -> None:
    batches = ShuffledBatches(tiny, batch=32, seed=0)
    assert batches.per_epoch == 6
    epochs = [torch.cat([batches.draw(6 * epoch + place).rows_N for place in range(1, 7)]) for epoch in range(2)]
    for rows in epochs:
        assert torch.equal(rows.sort().values, tiny.roles["train"])
    assert not torch.equal(*epochs)
    drawn = batches.draw(9)
    assert torch.equal(drawn.labels_N, tiny.labels_N[drawn.rows_N])


def test_a_step_is_drawn_the_same_in_any_order(tiny: Dataset) -> None:
    shuffled = [ShuffledBatches(tiny, batch=50, seed=3) for _ in range(2)]
    forward = [shuffled[0].draw(step).rows_N for step in range(1, 9)]
    backward = [shuffled[1].draw(step).rows_N for step in range(8, 0, -1)]
    assert all(map(torch.equal, forward, reversed(backward)))
    episodes = EpisodeBatches(tiny, classes=4, shot=2, queries=3, free=5, tasks=2, seed=3)
    first = episodes.draw(7).rows_N
    episodes.draw(1)
    assert torch.equal(episodes.draw(7).rows_N, first)
    assert not torch.equal(episodes.draw(8).rows_N, first)


def test_episodes_hold_distinct_training_images_of_their_classes(tiny: Dataset) -> None:
    episodes = EpisodeBatches(tiny, classes=5, shot=3, queries=4, free=20, tasks=6, seed=0)
    drawn = episodes.draw(1)
    assert drawn.support_TCK.shape == (6, 5, 3)
    assert drawn.query_TCQ.shape == (6, 5, 4)
    assert all(len(set(labels.tolist())) == 5 for labels in drawn.labels_TC)
    images_TCN = torch.cat([drawn.support_TCK, drawn.query_TCQ], dim=-1)
    assert (images_TCN.sort().values.diff() > 0).all()
    assert torch.equal(tiny.labels_N[images_TCN], drawn.labels_TC.unsqueeze(-1).expand_as(images_TCN))
    assert len(set(drawn.free_B.tolist())) == 20
    assert torch.equal(drawn.free_labels_B, tiny.labels_N[drawn.free_B])
    assert torch.isin(drawn.rows_N, tiny.roles["train"]).all()
    assert len(drawn.rows_N) == 6 * 5 * 7 + 20


def test_every_image_and_class_is_drawn_about_equally_often(tiny: Dataset) -> None:
    episodes = EpisodeBatches(tiny, classes=4, shot=1, queries=2, free=0, seed=0)
    rows = torch.cat([episodes.draw(step).rows_N for step in range(1, 1601)])
    counts = torch.bincount(rows, minlength=len(tiny.labels_N))[tiny.roles["train"]].float()
    # 19,200 draws over 192 images: 100 each, standard deviation about 9.
    assert counts.min() > 55
    assert counts.max() < 150


def test_a_step_stays_in_one_domain(tiny_domains: Dataset) -> None:
    per_image = tiny_domains.header.domain_rule == "per_image"
    episodes = EpisodeBatches(tiny_domains, classes=8, shot=2, queries=1, free=30, tasks=3, seed=1)
    domains = set()
    for step in range(1, 30):
        drawn = episodes.draw(step)
        # A class belongs to one domain: 6 of the 12 seen classes each, so a step of 8 gets 6.
        assert drawn.labels_TC.shape == (3, 8 if per_image else 6)
        own = set(tiny_domains.domains_N[torch.cat([drawn.support_TCK.flatten(), drawn.query_TCQ.flatten()])].tolist())
        free = set(tiny_domains.domains_N[drawn.free_B].tolist())
        assert len(own) == 1
        assert free == own if per_image else free == {0, 1}
        domains |= own
    assert domains == {0, 1}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"classes": 9}, "draws 9 classes, but tiny has 8 seen classes"),
        ({"shot": 20, "queries": 5}, r"class seen-0 has 24 training images .* needs 25 \(20 shots \+ 5 queries\)"),
        ({"free": 193}, "draws 193 free images, but only 192"),
        ({"shot": 0}, "0 shots"),
    ],
)
def test_what_cannot_be_drawn_is_said_at_once(tiny: Dataset, asked: dict[str, int], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        EpisodeBatches(tiny, **{"classes": 4, "shot": 1, "queries": 1, "free": 0, "seed": 0} | asked)


def test_a_class_short_of_images_in_one_domain_is_drawn_from_the_other(tmp_path: Path) -> None:
    write_tiny_dataset(tmp_path / "odd", per_class=9, domain_rule="per_image")  # 5 images left, 4 right
    dataset = open_dataset(tmp_path / "odd")
    episodes = EpisodeBatches(dataset, classes=4, shot=4, queries=0, free=0, seed=0)
    assert episodes.draw(1).labels_TC.shape == (1, 4)
    with pytest.raises(BadInput, match="has 5 training images"):
        EpisodeBatches(dataset, classes=4, shot=5, queries=1, free=0, seed=0)
    with pytest.raises(BadInput, match=r"domain right has at most 4 training images of a class, a step needs 5 \(5"):
        EpisodeBatches(dataset, classes=4, shot=5, queries=0, free=0, seed=0)


@pytest.mark.parametrize("batch", [0, 193])
def test_an_impossible_batch_size_is_refused(tiny: Dataset, batch: int) -> None:
    with pytest.raises(BadInput, match=f"batch size {batch}: expected 1 to 192"):
        ShuffledBatches(tiny, batch=batch, seed=0)
