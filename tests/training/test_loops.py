"""Pre-training and meta-training of small things on a tiny dataset."""

import math

import pytest
import torch
import torch.nn.functional as F

from repro.data.dataset import Dataset
from repro.data.loading import ImageStore, normalise
from repro.errors import BadInput, Diverged
from repro.methods.base import EmbeddedBatch
from repro.models.device import Acceleration
from repro.models.pretrained import CLASSIFIERS, Pretrained
from repro.training.augment import Augmentation
from repro.training.embedding import embed_rows
from repro.training.optim import Optimisation
from repro.training.prototypes import prototype_accuracy
from tests.training.small import DIM, TRAININGS, Swap, small_backbone, small_meta_training, small_pretraining


@pytest.mark.parametrize("kind", TRAININGS)
def test_training_lowers_the_loss_and_keeps_the_best_weights(tiny: Dataset, kind: str) -> None:
    length = {"pretrain": {"epochs": 10}, "meta": {"steps": 60, "validate_every": 20}}[kind]
    training = TRAININGS[kind](tiny, dropout=0.0, **length)
    metrics = list(training)
    assert [one.step for one in metrics] == list(range(1, 61))
    assert metrics[-1].loss < 0.8 * metrics[0].loss
    validated = {one.step: one.validation for one in metrics if one.validation is not None}
    assert list(validated) == (list(range(6, 61, 6)) if kind == "pretrain" else [20, 40, 60])
    assert training.best.value == metrics[-1].best >= max(validated.values())
    assert training.validate(training.learner.model)["accuracy"] == training.best.value
    training.install_best("errors")
    assert training.validate(training.learner.model)["errors"] == training.bests["errors"].value


def test_the_weights_of_the_best_validation_come_back(tiny: Dataset) -> None:
    values = iter([0.0, 1.0, 3.0, 2.0])
    seen = []

    def validate(model: Pretrained) -> dict[str, float]:
        assert not model.training
        assert not torch.is_grad_enabled()
        seen.append(model.classifier.weight_SD.clone())
        value = next(values)
        return {"first": value, "second": -abs(value - 1)}

    training = small_pretraining(tiny, validate=validate)
    list(training)
    assert torch.equal(training.learner.model.classifier.weight_SD, seen[2])
    assert training.best.step == 12
    training.install_best("second")
    assert torch.equal(training.learner.model.classifier.weight_SD, seen[1])


@pytest.mark.parametrize("kind", TRAININGS)
def test_what_training_does_not_improve_stays_as_it_came(tiny: Dataset, kind: str) -> None:
    values = iter([5.0, *[4.0] * 3])
    training = TRAININGS[kind](tiny, validate=lambda _: {"value": next(values)})
    before = {name: tensor.clone() for name, tensor in training.learner.model.state_dict().items()}
    metrics = list(training)
    assert (training.best.value, training.best.step) == (5.0, 0)
    assert [one.best for one in metrics] == [5.0] * len(metrics)
    after = training.learner.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert len(training.history["validation"]) == len(metrics)


def test_without_validation_the_last_weights_stay(tiny: Dataset) -> None:
    training = small_meta_training(tiny, validate=None)
    metrics = list(training)
    assert metrics[-1].validation is None
    assert training.best is None
    assert all(math.isnan(value) for value in training.history["validation"])


@pytest.mark.parametrize("kind", TRAININGS)
def test_the_same_seed_gives_the_same_losses(tiny: Dataset, kind: str) -> None:
    first, second, other = (TRAININGS[kind](tiny, seed=seed) for seed in (3, 3, 4))
    losses = [[metrics.loss for metrics in training] for training in (first, second, other)]
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


@pytest.mark.parametrize("acceleration", [Acceleration("bf16"), Acceleration("fp16", channels_last=False)])
@pytest.mark.parametrize("kind", TRAININGS)
def test_mixed_precision_follows_full_precision(tiny: Dataset, kind: str, acceleration: Acceleration) -> None:
    # fp16 skips a step whenever its loss scale proves too large, so only the first losses are compared.
    full, mixed = (
        [one.loss for one in TRAININGS[kind](tiny, dropout=0.0, acceleration=precision)]
        for precision in (Acceleration(), acceleration)
    )
    assert full[0] == pytest.approx(mixed[0], rel=0.02)
    assert mixed[-1] < mixed[0]


@pytest.mark.parametrize("kind", TRAININGS)
def test_augmented_trainings_run(tiny: Dataset, kind: str) -> None:
    augmentation = Augmentation(crop_padding=1, jitter=0.2)
    plain, augmented = (
        [one.loss for one in TRAININGS[kind](tiny, augmentation=some)] for some in (Augmentation(), augmentation)
    )
    assert plain != augmented
    assert augmented[-1] < augmented[0]


@pytest.mark.parametrize("kind", TRAININGS)
def test_a_loss_that_is_not_a_number_stops_the_run(tiny: Dataset, kind: str) -> None:
    training = TRAININGS[kind](tiny, optimisation=Optimisation(1e30))
    with pytest.raises(Diverged, match=r"the loss is (nan|inf) at step \d+ \(lr 1e\+30\).*lower lr or set clip"):
        list(training)


def test_batch_norm_in_evaluation_mode_keeps_its_statistics_and_dropout_acts(tiny: Dataset) -> None:
    training = small_meta_training(tiny, batch_norm="eval", dropout=0.5)
    backbone = training.learner.model.backbone
    before = backbone[1].running_mean.clone()
    steps = iter(training)
    next(steps)
    assert torch.equal(backbone[1].running_mean, before)
    assert backbone[7].training
    trained = small_meta_training(tiny, batch_norm="train")
    next(iter(trained))
    assert not torch.equal(trained.learner.model.backbone[1].running_mean, before)


def test_a_step_is_one_forward_of_all_its_images(tiny: Dataset) -> None:
    training = small_meta_training(tiny, validate=None, steps=4)
    sizes = []
    training.learner.model.backbone.register_forward_hook(lambda _module, inputs, _output: sizes.append(len(inputs[0])))
    list(training)
    assert sizes == [6 * (2 + 1) + 21] * 4


def test_the_loss_sees_the_embeddings_of_its_own_images(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[EmbeddedBatch] = []
    original = Swap.loss

    def spied(self: Swap, batch: EmbeddedBatch, generator: torch.Generator) -> torch.Tensor:
        got.append(batch)
        return original(self, batch, generator)

    monkeypatch.setattr(Swap, "loss", spied)
    for frozen in (False, True):
        training = small_meta_training(tiny, batch_norm="eval", dropout=0.0, frozen=frozen)
        drawn = training.draws.draw(1)
        store = ImageStore(tiny.images_NHWC, torch.device("cpu"))
        expected = {
            name: embed_rows(training.learner.model.backbone, store, rows.flatten()).view(*rows.shape, DIM)
            for name, rows in (("support", drawn.support_TCK), ("query", drawn.query_TCQ), ("free", drawn.free_B))
        }
        next(iter(training))
        batch = got.pop()
        torch.testing.assert_close(batch.support_TCKD.detach(), expected["support"])
        torch.testing.assert_close(batch.query_TCQD.detach(), expected["query"])
        torch.testing.assert_close(batch.free_BD.detach(), expected["free"])
        assert torch.equal(batch.labels_TC, drawn.labels_TC)


def test_a_frozen_backbone_embeds_every_training_image_once(tiny: Dataset) -> None:
    training = small_meta_training(tiny, frozen=True, validate=None, batch_norm="eval")
    backbone = training.learner.model.backbone
    weights = [parameter.clone() for parameter in backbone.parameters()]
    images = []
    backbone.register_forward_hook(lambda _module, inputs, _output: images.append(len(inputs[0])))
    seen = training.learner.model.seen_weight_SD.clone()
    list(training)
    assert sum(images) == len(tiny.roles["train"])
    assert not torch.equal(seen, training.learner.model.seen_weight_SD)
    assert all(map(torch.equal, weights, backbone.parameters()))


def test_prototype_accuracy_equals_one_task_at_a_time(tiny: Dataset) -> None:
    random = torch.Generator().manual_seed(0)
    images_CN = tiny.roles["val"].view(6, 24)
    picks = torch.stack(
        [torch.stack([images[torch.randperm(24, generator=random)[:7]] for images in images_CN]) for _ in range(130)]
    )
    store = ImageStore(tiny.images_NHWC, torch.device("cpu"))
    backbone = small_backbone().eval()
    correct = []
    for task_WN in picks:
        embedded = backbone(normalise(store.fetch(task_WN.flatten()))).view(6, 7, DIM).detach()
        nearest = torch.cdist(embedded[:, 2:].reshape(-1, DIM), embedded[:, :2].mean(dim=1)).argmin(dim=1)
        correct.append((nearest.view(6, 5) == torch.arange(6)[:, None]).float().mean())
    accuracy = prototype_accuracy(backbone, store, picks[..., :2], picks[..., 2:])
    assert accuracy == pytest.approx(100 * float(torch.stack(correct).mean()), abs=0.05)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_form_learns(tiny: Dataset, name: str) -> None:
    torch.manual_seed(0)
    model = Pretrained(small_backbone(), DIM, 8, classifier=name)
    embeddings_ND, labels_N = torch.randn(40, DIM), torch.arange(40) % 8
    logits_NS = model.classifier(embeddings_ND)
    assert logits_NS.shape == (40, 8)
    F.cross_entropy(logits_NS, labels_N).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.classifier.parameters())


def test_classifier_forms_follow_their_formulas() -> None:
    embeddings_ND = torch.randn(5, 4)
    rows_SD = torch.randn(3, 4)
    unit_SD = rows_SD / rows_SD.norm(dim=1, keepdim=True)
    cosine_NS = F.cosine_similarity(embeddings_ND[:, None], rows_SD[None], dim=-1)
    for name, options, expected in (
        ("linear", {}, embeddings_ND @ rows_SD.T),
        ("normalised", {"temperature": 0.25}, embeddings_ND @ unit_SD.T * 4),
        ("cosine", {"scale": 7.0}, 7 * cosine_NS),
    ):
        classifier = CLASSIFIERS[name](4, 3, **options)
        classifier.weight_SD.data = rows_SD
        torch.testing.assert_close(classifier(embeddings_ND).detach(), expected)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"shot": 30}, "has 24 training images .* needs 31"),
        ({"steps": 0}, "steps=0"),
        ({"validate_every": 0}, "validate_every=0"),
    ],
)
def test_impossible_meta_trainings_are_refused(tiny: Dataset, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        small_meta_training(tiny, **options)


def test_impossible_pre_trainings_are_refused(tiny: Dataset) -> None:
    with pytest.raises(BadInput, match="classifier 'softmax' is unknown; expected one of linear, normalised, cosine"):
        Pretrained(small_backbone(), DIM, 8, classifier="softmax")
    with pytest.raises(
        BadInput,
        match="classifier linear: unknown option temperature; remove it or correct its spelling; it takes no options",
    ):
        Pretrained(small_backbone(), DIM, 8, temperature=0.5)
    with pytest.raises(BadInput, match="batch size 500"):
        small_pretraining(tiny, batch=500)
    with pytest.raises(BadInput, match="epochs=0, batch=31"):
        small_pretraining(tiny, epochs=0)


def test_a_method_without_training_is_not_meta_trained(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Swap, "batch_spec", lambda self, shot: None)
    with pytest.raises(BadInput, match="Swap has nothing to train after pre-training"):
        small_meta_training(tiny)


def test_the_backbone_is_compiled_when_asked(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda module: compiled.append(module) or module)
    training = small_meta_training(tiny, acceleration=Acceleration(compile=True), steps=1)
    assert compiled == [training.learner.model.backbone]
