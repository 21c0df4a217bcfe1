"""params.yaml that no stage may begin with: wrong values, names that lead nowhere, hostile YAML."""

import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from tests.bad_inputs.asking import PLAN, Damage, Refused, Row, nothing, params, removed, written
from tests.pipeline.small_params import small_params

TASKS = "stages plan && stages episodes mini"
LAUGHS = "\n".join(["a0: &a0 [x, x]", *(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]" for n in range(40))])
DATASET = small_params()["datasets"]["mini"]


def piped(folder: Path) -> None:
    """params.yaml is a pipe that nobody writes to."""
    (folder / "params.yaml").unlink()
    os.mkfifo(folder / "params.yaml")


def endless(folder: Path) -> None:
    """params.yaml is a device that never ends."""
    (folder / "params.yaml").unlink()
    (folder / "params.yaml").symlink_to("/dev/zero")


def backbone(**options: object) -> Damage:
    """The backbone of all datasets with these options."""
    return params(backbone__options=options)


REFUSED: dict[str, Refused] = {
    "a pipe": (piped, "params.yaml: is a pipe or a device; expected the parameters"),
    "a device": (endless, "params.yaml: is a pipe or a device; expected the parameters"),
    "no classifiers": (
        params(pretraining__classifiers={}),
        "pretraining.classifiers are none, expected standard among them",
    ),
    "a misspelt method": (params(methods__castel={"options": {}}), "methods.castel: method is 'castel'"),
    "wrong things in a list": (
        params(seeds=[True, 1.5]),
        "params.yaml: seeds.0 is True, expected: input should be a valid integer; "
        "seeds.1 is 1.5, expected: input should be a valid integer\n",
    ),
    "a way that is none": (
        params(measuring__few_shot=["ALL"]),
        "params.yaml: measuring.few_shot.0 is 'ALL', expected: a number of ways from 1, or all\n",
    ),
    "a rate beyond single precision": (params(pretraining__lr=1e308), "pretraining.lr is 1e+308, expected at most"),
    "a ratio beyond single precision": (
        params(methods__castle__options={"ratio": 1e308}),
        "methods.castle.options.ratio is 1e+308, expected at most 1e+30",
    ),
    "a rate that single precision takes for nothing": (
        params(pretraining__lr=1e-45),
        "pretraining.lr is 1e-45, expected 0 or at least 1e-30: single precision takes less for 0",
    ),
    "datasets that differ in capitals alone": (
        params(datasets__Mini=DATASET),
        "params.yaml: datasets mini and Mini differ in capitals alone, expected names apart; rename one",
    ),
    "weights from a server": (backbone(pretrained=True), "pretrained is no option of backbone castle_convnet4"),
    "weights from a file": (backbone(checkpoint_path="/etc/passwd"), "checkpoint_path is no option of backbone"),
    "a share above one in a backbone": (
        params(backbone={"name": "castle_resnet12", "options": {"drop_rate": 5}}),
        "drop_rate of backbone castle_resnet12 is 5, expected a share below 1",
    ),
    "a backbone larger than any": (
        params(backbone={"name": "castle_convnet4", "options": {"widths": [10**6] * 4}}),
        "weights, expected at most 10,000,000,000",
    ),
    "heads that the dictionary has not": (
        params(methods__castle__options={"heads": 7}),
        "mini-castle-1shot: method castle: the paper's dictionary has one head, 7 were asked for",
    ),
    "nothing left by dropout": (params(methods__castle__options={"dropout": 1.0}), "dropout 1.0 given; expected"),
    "more bases than numbers": (
        params(methods__castle__options={"ratio": 1e20}),
        "mini-castle-1shot: method castle does not take the options {'ratio': 1e+20}",
    ),
    "a step of no class": (
        params(methods__castle__options={"classes": 0}),
        "method castle: a step of 0 classes, 1 shots",
    ),
    "a way that nothing is stored for": (
        params(measuring__few_shot=[2]),
        "measuring.few_shot has 2 ways, datasets have stored tasks of 5",
    ),
    "what all datasets share, of one": (
        params(datasets__mini__pretraining={"shot": 3}),
        "datasets.mini.pretraining has shot, which all datasets share",
    ),
    "a row of no method": (params(paper__rows=["nope"]), "paper.rows: method is 'nope', expected one of"),
    "an endpoint like an option": (params(machine__endpoint="-x:1"), "is '-x:1', expected: host:port with"),
    "features of layers": (backbone(features_only=True), "features_only is no option of backbone"),
    "widths that are none": (backbone(widths="x"), "does not take the options {'widths': 'x'}"),
    "a backbone that fails in its own way": (
        params(backbone={"name": "resnet18", "options": {"block": "x"}}),
        "backbone resnet18 does not take the options {'block': 'x'}",
    ),
    "more threads than any machine": (params(threads=10**8), "threads is 100000000, expected"),
    "a word for a seed": (params(seeds=["x"]), "seeds.0 is 'x', expected"),
    "a word for seeds": (params(seeds="x"), "seeds is 'x', expected"),
    "no seed": (params(seeds=[]), "seeds is [], expected"),
    "a seed twice": (params(seeds=[1, 0, 1]), "seeds are [1, 0, 1], expected each once"),
    "seed instead of seeds": (params(seed=0), "unknown key seed"),
    "a negative seed": (params(seeds=[0, -1]), "seeds.1 is -1, expected"),
    "a fraction of a shot": (params(shot=1.5), "shot is 1.5, expected"),
    "a truth value for a number": (params(shot=True), "shot is True, expected"),
    "nothing for a number": (params(threads=None), "threads is None, expected"),
    "a huge number": (params(way=10**30), "way is a number of 100 bits, expected one of at most 64"),
    "not a number": (params(pretraining__lr=float("nan")), "pretraining.lr is nan, expected"),
    "an infinite number": (params(methods__castle__training__lr=float("inf")), "lr is inf, expected"),
    "a share above one": (params(pretraining__label_smoothing=1.5), "label_smoothing=1.5: expected"),
    "not a number for a share": (
        params(pretraining__label_smoothing=float("nan")),
        "pretraining.label_smoothing is nan, expected",
    ),
    "a list for a mapping": (params(machine=[1, 2]), "machine is [1, 2], expected"),
    "a mapping for a name": (params(dataset={"a": 1}), "dataset is {'a': 1}, expected"),
    "an unknown key": (params(sede=1), "unknown key sede"),
    "an unknown key far below": (
        params(methods__castle__training__lrr=1.0),
        "mini-castle-1shot: training: unknown key lrr",
    ),
    "a number as a key": (params(datasets={1: {}}), "datasets"),
    "a path for a name": (params(dataset="../mini"), "dataset is '../mini', expected: up to 100 letters,"),
    "a path as a key": (params(datasets={"../../x": {}}), "datasets"),
    "an image of no size": (params(datasets__mini__size=0), "datasets.mini.size is 0, expected"),
    "images larger than any": (params(datasets__mini__size=10**6), "datasets.mini.size is 1000000, expected"),
    "no shots": (params(episodes__shots=[]), "episodes.shots is [], expected"),
    "no ways": (params(episodes__test=[{"way": 0, "tasks": 1}]), "episodes.test.0.way is 0"),
    "a precision there is not": (params(precision__amp="fp8"), "amp 'fp8' is unknown; expected one of none"),
    "a method there is not": (params(method="castel"), "method is 'castel', expected one of"),
    "a dataset without a backbone": (
        params(datasets__mini__backbone={"nam": "x"}),
        "datasets.mini.backbone: name is missing; unknown key nam",
    ),
    "more tasks than memory": (
        params(episodes__test=[{"way": 5, "tasks": 10**9}]),
        "draw 45000000000 images, expected at most 1000000000",
    ),
    "a bomb of aliases": (written("params.yaml", LAUGHS), "more values or levels than any settings"),
    "an alias of itself": (written("params.yaml", "a: &a [*a]\n"), "more values or levels than any settings"),
    "a key given twice": (written("params.yaml", "seed: 1\nseed: 2\n"), "found duplicate key"),
    "a merged mapping": (written("params.yaml", "a: {b: 1}\n<<: {c: 2}\n"), "unknown key"),
    "a tag that runs code": (
        written("params.yaml", "seed: !!python/object/apply:os.system ['touch ran']\n"),
        "not plain YAML",
    ),
    "a tag of its own": (
        written("params.yaml", "seed: !mine 3\n"),
        "not plain YAML (could not determine a constructor for the tag '!mine'",
    ),
    "a tag for a number": (written("params.yaml", "seed: !!int 3\n"), "threads is missing"),
    "a tag for bytes": (written("params.yaml", "a: 1\nseed: !!binary aGk=\n"), "seed is bytes b'hi'"),
    "a tag for a set": (written("params.yaml", "seed: !!set {a, b}\n"), "seed is set"),
    "a date": (params(benchmark__name=date(2026, 1, 1)), "benchmark.name is date 2026-01-01, expected text"),
    "an escape code": (params(benchmark__name="\x1b[2J"), "expected text that can be printed"),
    "a shot twice": (params(episodes__shots=[1, 1]), "shots are [1, 1], expected each once"),
    "more tasks to select by than stored": (
        params(measuring__selection={"way": 5, "tasks": 900}),
        "measuring.selection.tasks is 900, mini has 20 stored validation tasks",
    ),
    "a training for what has none": (params(methods__mc_knn={"training": {"lr": 1.0}}), "has nothing to train"),
    "brackets without end": (written("params.yaml", "[" * 100_000), "not plain YAML"),
    "a list as a key": (written("params.yaml", "? [1, 2]\n: 3\n"), "has the key (1, 2), expected a name"),
    "several documents": (written("params.yaml", "seed: 1\n---\nseed: 2\n"), "not plain YAML"),
    "no text": (written("params.yaml", b"\xff\xfe\x00\x01"), "is no text"),
    "control characters": (written("params.yaml", "seed: \x00\x07\n"), "not plain YAML"),
    "an empty file": (written("params.yaml", ""), "holds NoneType"),
    "a file without end": (written("params.yaml", "x: " + "y" * 2_000_000), "expected at most"),
    "a number of many digits": (written("params.yaml", f"seed: {'9' * 10_000}\n"), "params.yaml"),
    "no file": (removed("params.yaml"), "params.yaml: cannot be read"),
    "a numbered processor": (params(machine__device="cpu:7"), "machine.device is 'cpu:7', expected"),
    "a device for shapes alone": (params(machine__device="meta"), "machine.device is 'meta', expected"),
    "an endpoint with a scheme": (params(machine__endpoint="tcp://a:1"), "machine.endpoint is 'tcp://a:1', expected"),
    "a billion processes": (params(machine__processes=10**9), "machine.processes is 1000000000, expected"),
    "a negative temperature": (
        params(methods__castle__options={"temperature": -1.0}),
        "temperature is -1.0, expected: input should be greater than 0",
    ),
    "no temperature": (
        params(pretraining__classifiers__standard={"name": "normalised", "options": {"temperature": 0.0}}),
        "temperature is 0.0, expected",
    ),
    "no classifier that a method starts from": (
        params(pretraining__classifiers={"standard": {"name": "normalised"}}),
        "pretraining.classifiers are standard, expected cosine among them",
    ),
    "a classifier with the name of none": (
        params(pretraining__classifiers__random={"name": "normalised"}),
        "pretraining.classifiers has random, which is the backbone left untrained",
    ),
    "two backbones of one name": (
        params(**{"pretraining__classifiers__x-standard": {"name": "normalised"}, "datasets__mini-x": DATASET}),
        "mini-x-standard is a backbone of the datasets mini and mini-x, expected names that tell them apart",
    ),
    "a way measured twice": (params(measuring__few_shot=[5, 5]), "few_shot are [5, 5], expected each once"),
    "one task": (params(episodes__test=[{"way": 5, "tasks": 1}]), "episodes.test.0.tasks is 1, expected"),
    "a limit of one task": (params(methods__castle__limit=1), "limit is 1, expected 0 for all tasks or at least 2"),
    "half a character": (written("params.yaml", 'a: "\\ud800"\n'), "a is '\\ud800', expected text that can be printed"),
    "a row of the paper's own": (params(paper__rows=["castle"]), "paper.rows has castle, expected methods that"),
    "a misspelt dataset": (params(dataset="minii"), "dataset is 'minii', expected one of mini"),
}
TABLE: dict[str, Row] = {
    "a device for the tools": (endless, "tools/scale", "params.yaml: is a pipe or a device; expected"),
    "no text for the tools": (written("params.yaml", b"\xff\xfe"), "tools/scale", "params.yaml: is no text"),
    "more ways than classes": (
        params(episodes__test=[{"way": 8, "tasks": 4}, {"way": 5, "tasks": 4}]),
        TASKS,
        "test has no more than 7 classes, tasks ask for 8 ways",
    ),
    "more queries than images": (params(episodes__query=400), TASKS, "tasks need 401; lower `shot` or `query`"),
    "a dataset that is not named": (nothing, "stages episodes maxi", "'maxi', expected one of: mini"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_parameters_are_refused_before_anything_runs(name: str, judge: Callable[..., None]) -> None:
    damage, expected = REFUSED[name]
    judge(damage, PLAN, expected)


@pytest.mark.parametrize("name", TABLE)
def test_wrong_parameters_get_one_sentence(name: str, judge: Callable[..., None]) -> None:
    judge(*TABLE[name])
