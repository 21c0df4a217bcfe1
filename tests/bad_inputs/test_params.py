"""params.yaml that no stage may begin with: wrong values, names that lead nowhere, hostile YAML."""

import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from tests.bad_inputs.asking import Damage, Row, nothing, params, removed, written
from tests.pipeline.small_params import small_params

PLAN = "stages plan"
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


TABLE: dict[str, Row] = {
    "a pipe": (piped, PLAN, "params.yaml: is a pipe or a device; expected the parameters"),
    "a device": (endless, PLAN, "params.yaml: is a pipe or a device; expected the parameters"),
    "a device for the tools": (endless, "tools/scale", "params.yaml: is a pipe or a device; expected"),
    "no text for the tools": (written("params.yaml", b"\xff\xfe"), "tools/scale", "params.yaml: is no text"),
    "no classifiers": (
        params(pretraining__classifiers={}),
        PLAN,
        "pretraining.classifiers are none, expected standard among them",
    ),
    "a misspelt method": (
        params(methods__castel={"options": {}}),
        PLAN,
        "methods.castel: method is 'castel'",
    ),
    "wrong things in a list": (
        params(seeds=[True, 1.5]),
        PLAN,
        "params.yaml: seeds.0 is True, expected: input should be a valid integer; "
        "seeds.1 is 1.5, expected: input should be a valid integer\n",
    ),
    "a way that is none": (
        params(measuring__few_shot=["ALL"]),
        PLAN,
        "params.yaml: measuring.few_shot.0 is 'ALL', expected: a number of ways from 1, or all\n",
    ),
    "a rate beyond single precision": (
        params(pretraining__lr=1e308),
        PLAN,
        "pretraining.lr is 1e+308, expected at most",
    ),
    "a ratio beyond single precision": (
        params(methods__castle__options={"ratio": 1e308}),
        PLAN,
        "methods.castle.options.ratio is 1e+308, expected at most 1e+30",
    ),
    "a rate that single precision takes for nothing": (
        params(pretraining__lr=1e-45),
        PLAN,
        "pretraining.lr is 1e-45, expected 0 or at least 1e-30: single precision takes less for 0",
    ),
    "datasets that differ in capitals alone": (
        params(datasets__Mini=DATASET),
        PLAN,
        "params.yaml: datasets mini and Mini differ in capitals alone, expected names apart; rename one",
    ),
    "weights from a server": (backbone(pretrained=True), PLAN, "pretrained is no option of backbone castle_convnet4"),
    "weights from a file": (backbone(checkpoint_path="/etc/passwd"), PLAN, "checkpoint_path is no option of backbone"),
    "a share above one in a backbone": (
        params(backbone={"name": "castle_resnet12", "options": {"drop_rate": 5}}),
        PLAN,
        "drop_rate of backbone castle_resnet12 is 5, expected a share below 1",
    ),
    "a backbone larger than any": (
        params(backbone={"name": "castle_convnet4", "options": {"widths": [10**6] * 4}}),
        PLAN,
        "weights, expected at most 10,000,000,000",
    ),
    "heads that the dictionary has not": (
        params(methods__castle__options={"heads": 7}),
        PLAN,
        "mini-castle-1shot: method castle: the paper's dictionary has one head, 7 were asked for",
    ),
    "nothing left by dropout": (params(methods__castle__options={"dropout": 1.0}), PLAN, "dropout 1.0 given; expected"),
    "more bases than numbers": (
        params(methods__castle__options={"ratio": 1e20}),
        PLAN,
        "mini-castle-1shot: method castle does not take the options {'ratio': 1e+20}",
    ),
    "a step of no class": (
        params(methods__castle__options={"classes": 0}),
        PLAN,
        "method castle: a step of 0 classes, 1 shots",
    ),
    "a way that nothing is stored for": (
        params(measuring__few_shot=[2]),
        PLAN,
        "measuring.few_shot has 2 ways, datasets have stored tasks of 5",
    ),
    "what all datasets share, of one": (
        params(datasets__mini__pretraining={"shot": 3}),
        PLAN,
        "datasets.mini.pretraining has shot, which all datasets share",
    ),
    "a row of no method": (params(paper__rows=["nope"]), PLAN, "paper.rows: method is 'nope', expected one of"),
    "an endpoint like an option": (params(machine__endpoint="-x:1"), PLAN, "is '-x:1', expected: host:port with"),
    "features of layers": (
        backbone(features_only=True),
        PLAN,
        "features_only is no option of backbone",
    ),
    "widths that are none": (backbone(widths="x"), PLAN, "does not take the options {'widths': 'x'}"),
    "a backbone that fails in its own way": (
        params(backbone={"name": "resnet18", "options": {"block": "x"}}),
        PLAN,
        "backbone resnet18 does not take the options {'block': 'x'}",
    ),
    "more threads than any machine": (params(threads=10**8), PLAN, "threads is 100000000, expected"),
    "a word for a seed": (params(seeds=["x"]), PLAN, "seeds.0 is 'x', expected"),
    "a word for seeds": (params(seeds="x"), PLAN, "seeds is 'x', expected"),
    "no seed": (params(seeds=[]), PLAN, "seeds is [], expected"),
    "a seed twice": (params(seeds=[1, 0, 1]), PLAN, "seeds are [1, 0, 1], expected each once"),
    "seed instead of seeds": (params(seed=0), PLAN, "unknown key seed"),
    "a negative seed": (params(seeds=[0, -1]), PLAN, "seeds.1 is -1, expected"),
    "a fraction of a shot": (params(shot=1.5), PLAN, "shot is 1.5, expected"),
    "a truth value for a number": (params(shot=True), PLAN, "shot is True, expected"),
    "nothing for a number": (params(threads=None), PLAN, "threads is None, expected"),
    "a huge number": (params(way=10**30), PLAN, "way is a number of 100 bits, expected one of at most 64"),
    "not a number": (
        params(pretraining__lr=float("nan")),
        PLAN,
        "pretraining.lr is nan, expected",
    ),
    "an infinite number": (
        params(methods__castle__training__lr=float("inf")),
        PLAN,
        "lr is inf, expected",
    ),
    "a share above one": (params(pretraining__label_smoothing=1.5), PLAN, "label_smoothing=1.5: expected"),
    "not a number for a share": (
        params(pretraining__label_smoothing=float("nan")),
        PLAN,
        "pretraining.label_smoothing is nan, expected",
    ),
    "a list for a mapping": (params(machine=[1, 2]), PLAN, "machine is [1, 2], expected"),
    "a mapping for a name": (params(dataset={"a": 1}), PLAN, "dataset is {'a': 1}, expected"),
    "an unknown key": (params(sede=1), PLAN, "unknown key sede"),
    "an unknown key far below": (
        params(methods__castle__training__lrr=1.0),
        PLAN,
        "mini-castle-1shot: training: unknown key lrr",
    ),
    "a number as a key": (params(datasets={1: {}}), PLAN, "datasets"),
    "a path for a name": (params(dataset="../mini"), PLAN, "dataset is '../mini', expected: up to 100 letters,"),
    "a path as a key": (params(datasets={"../../x": {}}), PLAN, "datasets"),
    "an image of no size": (params(datasets__mini__size=0), PLAN, "datasets.mini.size is 0, expected"),
    "images larger than any": (params(datasets__mini__size=10**6), PLAN, "datasets.mini.size is 1000000, expected"),
    "no shots": (params(episodes__shots=[]), PLAN, "episodes.shots is [], expected"),
    "no ways": (params(episodes__test=[{"way": 0, "tasks": 1}]), PLAN, "episodes.test.0.way is 0"),
    "a precision there is not": (params(precision__amp="fp8"), PLAN, "amp 'fp8' is unknown; expected one of none"),
    "a method there is not": (params(method="castel"), PLAN, "method is 'castel', expected one of"),
    "a dataset without a backbone": (
        params(datasets__mini__backbone={"nam": "x"}),
        PLAN,
        "datasets.mini.backbone: name is missing; unknown key nam",
    ),
    "more ways than classes": (
        params(episodes__test=[{"way": 8, "tasks": 4}, {"way": 5, "tasks": 4}]),
        TASKS,
        "test has no more than 7 classes, tasks ask for 8 ways",
    ),
    "more tasks than memory": (
        params(episodes__test=[{"way": 5, "tasks": 10**9}]),
        PLAN,
        "draw 45000000000 images, expected at most 1000000000",
    ),
    "more queries than images": (params(episodes__query=400), TASKS, "tasks need 401; lower `shot` or `query`"),
    "a bomb of aliases": (written("params.yaml", LAUGHS), PLAN, "more values or levels than any settings"),
    "an alias of itself": (written("params.yaml", "a: &a [*a]\n"), PLAN, "more values or levels than any settings"),
    "a key given twice": (written("params.yaml", "seed: 1\nseed: 2\n"), PLAN, "found duplicate key"),
    "a merged mapping": (written("params.yaml", "a: {b: 1}\n<<: {c: 2}\n"), PLAN, "unknown key"),
    "a tag that runs code": (
        written("params.yaml", "seed: !!python/object/apply:os.system ['touch ran']\n"),
        PLAN,
        "not plain YAML",
    ),
    "a tag of its own": (
        written("params.yaml", "seed: !mine 3\n"),
        PLAN,
        "not plain YAML (could not determine a constructor for the tag '!mine'",
    ),
    "a tag for a number": (
        written("params.yaml", "seed: !!int 3\n"),
        PLAN,
        "threads is missing",
    ),
    "a tag for bytes": (written("params.yaml", "a: 1\nseed: !!binary aGk=\n"), PLAN, "seed is bytes b'hi'"),
    "a tag for a set": (written("params.yaml", "seed: !!set {a, b}\n"), PLAN, "seed is set"),
    "a date": (params(benchmark__name=date(2026, 1, 1)), PLAN, "benchmark.name is date 2026-01-01, expected text"),
    "an escape code": (params(benchmark__name="\x1b[2J"), PLAN, "expected text that can be printed"),
    "a shot twice": (params(episodes__shots=[1, 1]), PLAN, "shots are [1, 1], expected each once"),
    "more tasks to select by than stored": (
        params(measuring__selection={"way": 5, "tasks": 900}),
        PLAN,
        "measuring.selection.tasks is 900, mini has 20 stored validation tasks",
    ),
    "a training for what has none": (params(methods__mc_knn={"training": {"lr": 1.0}}), PLAN, "has nothing to train"),
    "brackets without end": (written("params.yaml", "[" * 100_000), PLAN, "not plain YAML"),
    "a list as a key": (written("params.yaml", "? [1, 2]\n: 3\n"), PLAN, "has the key (1, 2), expected a name"),
    "several documents": (written("params.yaml", "seed: 1\n---\nseed: 2\n"), PLAN, "not plain YAML"),
    "no text": (written("params.yaml", b"\xff\xfe\x00\x01"), PLAN, "is no text"),
    "control characters": (written("params.yaml", "seed: \x00\x07\n"), PLAN, "not plain YAML"),
    "an empty file": (written("params.yaml", ""), PLAN, "holds NoneType"),
    "a file without end": (written("params.yaml", "x: " + "y" * 2_000_000), PLAN, "expected at most"),
    "a number of many digits": (written("params.yaml", f"seed: {'9' * 10_000}\n"), PLAN, "params.yaml"),
    "no file": (removed("params.yaml"), PLAN, "params.yaml: cannot be read"),
    "a numbered processor": (params(machine__device="cpu:7"), PLAN, "machine.device is 'cpu:7', expected"),
    "a device for shapes alone": (params(machine__device="meta"), PLAN, "machine.device is 'meta', expected"),
    "an endpoint with a scheme": (
        params(machine__endpoint="tcp://a:1"),
        PLAN,
        "machine.endpoint is 'tcp://a:1', expected",
    ),
    "a billion processes": (params(machine__processes=10**9), PLAN, "machine.processes is 1000000000, expected"),
    "a negative temperature": (
        params(methods__castle__options={"temperature": -1.0}),
        PLAN,
        "temperature is -1.0, expected: input should be greater than 0",
    ),
    "no temperature": (
        params(pretraining__classifiers__standard={"name": "normalised", "options": {"temperature": 0.0}}),
        PLAN,
        "temperature is 0.0, expected",
    ),
    "no classifier that a method starts from": (
        params(pretraining__classifiers={"standard": {"name": "normalised"}}),
        PLAN,
        "pretraining.classifiers are standard, expected cosine among them",
    ),
    "a classifier with the name of none": (
        params(pretraining__classifiers__random={"name": "normalised"}),
        PLAN,
        "pretraining.classifiers has random, which is the backbone left untrained",
    ),
    "two backbones of one name": (
        params(**{"pretraining__classifiers__x-standard": {"name": "normalised"}, "datasets__mini-x": DATASET}),
        PLAN,
        "mini-x-standard is a backbone of the datasets mini and mini-x, expected names that tell them apart",
    ),
    "a way measured twice": (params(measuring__few_shot=[5, 5]), PLAN, "few_shot are [5, 5], expected each once"),
    "one task": (params(episodes__test=[{"way": 5, "tasks": 1}]), PLAN, "episodes.test.0.tasks is 1, expected"),
    "a limit of one task": (
        params(methods__castle__limit=1),
        PLAN,
        "limit is 1, expected 0 for all tasks or at least 2",
    ),
    "half a character": (
        written("params.yaml", 'a: "\\ud800"\n'),
        PLAN,
        "a is '\\ud800', expected text that can be printed",
    ),
    "a row of the paper's own": (params(paper__rows=["castle"]), PLAN, "paper.rows has castle, expected methods that"),
    "a misspelt dataset": (params(dataset="minii"), PLAN, "dataset is 'minii', expected one of mini"),
    "a dataset that is not named": (nothing, "stages episodes maxi", "'maxi', expected one of: mini"),
}


@pytest.mark.parametrize("name", TABLE)
def test_wrong_parameters_get_one_sentence(name: str, judge: Callable[[Row], None]) -> None:
    judge(TABLE[name])
