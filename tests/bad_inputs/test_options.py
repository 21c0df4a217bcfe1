"""Options that a source, a backbone, a classifier, a method or a schedule does not take, and values it cannot use."""

from collections.abc import Callable

import pytest

from tests.bad_inputs.asking import Row, grid, params, several

SPLITS = "stages plan && stages splits mini"
PRETRAIN = "stages plan && stages pretrain mini-standard"
TRAIN = "stages plan && stages train mini-castle-1shot"
PLAN = "stages plan"
CASTLE = "methods__castle__training__"

TABLE: dict[str, Row] = {
    # Sources
    "a source there is not": (params(datasets__mini__source="imagenet"), SPLITS, "'imagenet', expected one of glyphs"),
    "an analogue there is not": (
        params(datasets__mini__options__analogue="maxi"),
        SPLITS,
        "analogue 'maxi' is unknown; expected one of mini",
    ),
    "an option glyphs do not take": (
        params(datasets__mini__options__colour="red"),
        SPLITS,
        "source glyphs: unknown option colour; remove it or correct its spelling; it takes analogue,",
    ),
    "glyphs without an option": (
        params(datasets__mini__options={"analogue": "mini"}),
        SPLITS,
        "source glyphs: classes is missing; images is missing;",
    ),
    "a word for a strength": (
        params(datasets__mini__options__noise="much"),
        SPLITS,
        "source glyphs: noise is 'much'",
    ),
    "a negative strength": (params(datasets__mini__options__noise=-1.0), SPLITS, "noise is -1.0, expected a strength"),
    "more images than memory": (
        params(datasets__mini__options__images__train=10**12),
        SPLITS,
        "ask for fewer images or a smaller size",
    ),
    "an option a folder does not take": (
        params(
            datasets__mini__source="image_folder",
            datasets__mini__options={"root": "x", "classes": [1, 1, 1], "extra": 1, "depth": 2},
        ),
        SPLITS,
        "source image_folder: unknown option depth; remove it or correct its spelling; it takes root, classes, extra,",
    ),
    # Models
    "a backbone there is not": (params(backbone__name="resnet13"), PRETRAIN, "unknown backbone 'resnet13'"),
    "an option a backbone does not take": (
        params(backbone__options={"depth": 3}),
        PRETRAIN,
        "backbone castle_convnet4_small does not take the options {'depth': 3}",
    ),
    "a backbone's option without sense": (
        params(backbone__name="castle_resnet12", backbone__options={"widths": [8, 8]}),
        PRETRAIN,
        "backbone castle_resnet12",
    ),
    "an option a classifier does not take": (
        params(pretraining__classifiers__standard={"name": "linear", "options": {"scale": 1.0}}),
        PRETRAIN,
        "classifier linear: unknown option scale; remove it or correct its spelling; it takes no options",
    ),
    "a classifier there is not": (
        params(pretraining__classifiers__standard={"name": "square"}),
        PRETRAIN,
        "classifier 'square' is unknown; expected one of linear",
    ),
    "a device there is not": (
        params(machine__device="mps"),
        PLAN,
        "machine.device is 'mps', expected: auto, cpu, cuda or cuda:N with a card's number",
    ),
    "a device with a line's end": (params(machine__device="cpu\n"), PLAN, "device is 'cpu\\n', expected: auto, cpu,"),
    "an endpoint without a port": (params(machine__endpoint="host"), PLAN, "is 'host', expected: host:port with"),
    "an endpoint with no port": (params(machine__endpoint="host:0"), PLAN, "is 'host:0', expected: host:port with"),
    "an endpoint with no such port": (params(machine__endpoint="h:65536"), PLAN, "a port from 1 to 65535"),
    "a graphics card there is not": (params(machine__device="cuda:99"), PRETRAIN, "CUDA devices here; use auto or cpu"),
    # Methods and their training
    "an option a method does not take": (
        params(methods__castle__options={"bases": 3}),
        TRAIN,
        "method castle: unknown option bases; remove it or correct its spelling; it takes dictionary, ratio,",
    ),
    "a word for an option's number": (
        params(methods__castle__options={"temperature": "warm"}),
        TRAIN,
        "method castle: temperature is 'warm', expected: input should be a valid number",
    ),
    "a negative option": (params(methods__castle__options={"classes": -3}), TRAIN, "-3 classes"),
    "a dictionary there is not": (
        params(methods__castle__options={"dictionary": "new"}),
        TRAIN,
        "unknown dictionary 'new'",
    ),
    "more classes than are seen": (params(methods__castle__options={"classes": 80}), TRAIN, "a step draws 80 classes"),
    "an option of the base a method adapts": (
        several(
            params(methods__upper_bound__options={"bases": 3}),
            grid(adapted__ADAPTED__method="upper_bound", adapted__ADAPTED__base="mini-protonet-1shot"),
        ),
        PLAN,
        "method upper_bound: unknown option bases; remove it or correct its spelling; it takes temperature,",
    ),
    "an option where none is taken": (
        params(methods__mc_knn__options={"k": 3}),
        PLAN,
        "method mc_knn: unknown option k; remove it or correct its spelling; it takes no options",
    ),
    "a schedule there is not": (
        params(**{f"{CASTLE}schedule": {"name": "linear"}}),
        TRAIN,
        "schedule 'linear' is unknown; expected one of constant",
    ),
    "an option a schedule does not take": (
        params(**{f"{CASTLE}schedule": {"name": "cosine", "options": {"rise": 1}}}),
        TRAIN,
        "schedule cosine: unknown option rise; remove it or correct its spelling; it takes no options",
    ),
    "a schedule that never steps": (
        params(**{f"{CASTLE}schedule": {"name": "decay", "options": {"every": 0}}}),
        TRAIN,
        "every is 0, expected at least 1 step",
    ),
    "batch norm in no mode": (params(**{f"{CASTLE}batch_norm": "now"}), TRAIN, "batch_norm is 'now', expected"),
}


@pytest.mark.parametrize("name", TABLE)
def test_options_get_one_sentence(name: str, judge: Callable[[Row], None]) -> None:
    judge(TABLE[name])
