"""Options that a source, a backbone, a classifier, a method or a schedule does not take, and values it cannot use."""

from collections.abc import Callable

import pytest

from tests.bad_inputs.asking import PLAN, Refused, Row, grid, params, several

SPLITS = "stages plan && stages splits mini"
PRETRAIN = "stages plan && stages pretrain mini-standard"
TRAIN = "stages plan && stages train mini-castle-1shot"
CASTLE = "methods__castle__training__"

REFUSED: dict[str, Refused] = {
    "a device there is not": (
        params(machine__device="mps"),
        "machine.device is 'mps', expected: auto, cpu, cuda or cuda:N with a card's number",
    ),
    "a device with a line's end": (params(machine__device="cpu\n"), "device is 'cpu\\n', expected: auto, cpu,"),
    "an endpoint without a port": (params(machine__endpoint="host"), "is 'host', expected: host:port with"),
    "an endpoint with no port": (params(machine__endpoint="host:0"), "is 'host:0', expected: host:port with"),
    "an endpoint with no such port": (params(machine__endpoint="h:65536"), "a port from 1 to 65535"),
    "an option of the base a method adapts": (
        several(
            params(methods__upper_bound__options={"bases": 3}),
            grid(adapted__ADAPTED__method="upper_bound", adapted__ADAPTED__base="mini-protonet-1shot"),
        ),
        "method upper_bound: unknown option bases; remove it or correct its spelling; it takes temperature,",
    ),
    "an option where none is taken": (
        params(methods__mc_knn__options={"k": 3}),
        "method mc_knn: unknown option k; remove it or correct its spelling; it takes no options",
    ),
    "a source there is not": (params(datasets__mini__source="imagenet"), "'imagenet', expected one of glyphs"),
    "an option glyphs do not take": (
        params(datasets__mini__options__colour="red"),
        "source glyphs: unknown option colour; remove it or correct its spelling; it takes analogue,",
    ),
    "glyphs without an option": (
        params(datasets__mini__options={"analogue": "mini"}),
        "source glyphs: classes is missing; images is missing;",
    ),
    "a word for a strength": (params(datasets__mini__options__noise="much"), "source glyphs: noise is 'much'"),
    "an option a folder does not take": (
        params(
            datasets__mini__source="image_folder",
            datasets__mini__options={"root": "x", "classes": [1, 1, 1], "extra": 1, "depth": 2},
        ),
        "source image_folder: unknown option depth; remove it or correct its spelling; it takes root, classes, extra,",
    ),
    "a backbone there is not": (params(backbone__name="resnet13"), "unknown backbone 'resnet13'"),
    "an option a backbone does not take": (
        params(backbone__options={"depth": 3}),
        "backbone castle_convnet4_small does not take the options {'depth': 3}",
    ),
    "a backbone's option without sense": (
        params(backbone__name="castle_resnet12", backbone__options={"widths": [8, 8]}),
        "backbone castle_resnet12",
    ),
    "an option a classifier does not take": (
        params(pretraining__classifiers__standard={"name": "linear", "options": {"scale": 1.0}}),
        "classifier linear: unknown option scale; remove it or correct its spelling; it takes no options",
    ),
    "a classifier there is not": (
        params(pretraining__classifiers__standard={"name": "square"}),
        "classifier 'square' is unknown; expected one of linear",
    ),
    "an option a method does not take": (
        params(methods__castle__options={"bases": 3}),
        "method castle: unknown option bases; remove it or correct its spelling; it takes dictionary, ratio,",
    ),
    "a word for an option's number": (
        params(methods__castle__options={"temperature": "warm"}),
        "method castle: temperature is 'warm', expected: input should be a valid number",
    ),
    "a negative option": (params(methods__castle__options={"classes": -3}), "-3 classes"),
    "a dictionary there is not": (params(methods__castle__options={"dictionary": "new"}), "unknown dictionary 'new'"),
    "a schedule there is not": (
        params(**{f"{CASTLE}schedule": {"name": "linear"}}),
        "schedule 'linear' is unknown; expected one of constant",
    ),
    "an option a schedule does not take": (
        params(**{f"{CASTLE}schedule": {"name": "cosine", "options": {"rise": 1}}}),
        "schedule cosine: unknown option rise; remove it or correct its spelling; it takes no options",
    ),
    "a schedule that never steps": (
        params(**{f"{CASTLE}schedule": {"name": "decay", "options": {"every": 0}}}),
        "every is 0, expected at least 1 step",
    ),
    "batch norm in no mode": (params(**{f"{CASTLE}batch_norm": "now"}), "batch_norm is 'now', expected"),
}
# Only the stage itself can know.
TABLE: dict[str, Row] = {
    "an analogue there is not": (
        params(datasets__mini__options__analogue="maxi"),
        SPLITS,
        "analogue 'maxi' is unknown; expected one of mini",
    ),
    "a negative strength": (params(datasets__mini__options__noise=-1.0), SPLITS, "noise is -1.0, expected a strength"),
    "more images than memory": (
        params(datasets__mini__options__images__train=10**12),
        SPLITS,
        "ask for fewer images or a smaller size",
    ),
    "a graphics card there is not": (params(machine__device="cuda:99"), PRETRAIN, "CUDA devices here; use auto or cpu"),
    "more classes than are seen": (params(methods__castle__options={"classes": 80}), TRAIN, "a step draws 80 classes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_are_not_taken_are_refused_before_anything_runs(name: str, judge: Callable[..., None]) -> None:
    damage, expected = REFUSED[name]
    judge(damage, PLAN, expected)


@pytest.mark.parametrize("name", TABLE)
def test_what_a_stage_cannot_use_gets_one_sentence(name: str, judge: Callable[..., None]) -> None:
    judge(*TABLE[name])
