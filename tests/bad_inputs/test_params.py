"""params.yaml that no stage may begin with: wrong values, names that lead nowhere, hostile YAML."""

from collections.abc import Callable

import pytest

from tests.bad_inputs.asking import Row, nothing, params, removed, written

TASKS = "stages episodes mini"
LAUGHS = "\n".join(["a0: &a0 [x, x]", *(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]" for n in range(40))])

TABLE: dict[str, Row] = {
    "more threads than any machine": (params(threads=10**8), TASKS, "threads is 100000000, expected"),
    "a word for a number": (params(seed="x"), TASKS, "seed is 'x', expected"),
    "a negative seed": (params(seed=-1), TASKS, "seed is -1, expected"),
    "a fraction of a shot": (params(shot=1.5), TASKS, "shot is 1.5, expected"),
    "a truth value for a number": (params(shot=True), TASKS, "shot is True, expected"),
    "nothing for a number": (params(threads=None), TASKS, "threads is None, expected"),
    "a huge number": (params(way=10**30), TASKS, "way is 1000000000000000000000000000000, expected"),
    "not a number": (
        params(pretraining__optimisation__lr=float("nan")),
        TASKS,
        "pretraining.optimisation.lr is nan, expected",
    ),
    "an infinite number": (
        params(methods__castle__training__optimisation__lr=float("inf")),
        TASKS,
        "methods.castle.training.optimisation.lr is inf, expected",
    ),
    "a share above one": (params(pretraining__label_smoothing=1.5), TASKS, "pretraining.label_smoothing is 1.5"),
    "not a number for a share": (
        params(pretraining__label_smoothing=float("nan")),
        TASKS,
        "pretraining.label_smoothing is nan, expected",
    ),
    "a list for a mapping": (params(machine=[1, 2]), TASKS, "machine is [1, 2], expected"),
    "a mapping for a name": (params(dataset={"a": 1}), TASKS, "dataset is {'a': 1}, expected"),
    "an unknown key": (params(sede=1), TASKS, "unknown key sede"),
    "an unknown key far below": (
        params(methods__castle__training__optimisation__lrr=1.0),
        TASKS,
        "unknown key methods.castle.training.optimisation.lrr",
    ),
    "a number as a key": (params(datasets={1: {}}), TASKS, "datasets"),
    "a path for a name": (params(dataset="../mini"), TASKS, "dataset is '../mini', expected"),
    "a path as a key": (params(datasets={"../../x": {}}), TASKS, "datasets"),
    "an image of no size": (params(datasets__mini__size=0), TASKS, "datasets.mini.size is 0, expected"),
    "images larger than any": (params(datasets__mini__size=10**6), TASKS, "datasets.mini.size is 1000000, expected"),
    "no shots": (params(episodes__mini__shots=[]), TASKS, "episodes.mini.shots is [], expected"),
    "no ways": (params(episodes__mini__test=[{"way": 0, "tasks": 1}]), TASKS, "episodes.mini.test.0.way is 0"),
    "a precision there is not": (params(precision__amp="fp8"), TASKS, "precision.amp is 'fp8', expected"),
    "a method there is not": (params(method="castel"), TASKS, "method is 'castel', expected one of"),
    "a dataset without a backbone": (params(backbones={}), TASKS, "backbones: 'mini' is in it or in datasets"),
    "more ways than classes": (
        params(episodes__mini__test=[{"way": 8, "tasks": 4}]),
        TASKS,
        "test has no more than 7 classes, tasks ask for 8 ways",
    ),
    "more tasks than memory": (
        params(episodes__mini__test=[{"way": 5, "tasks": 10**9}]),
        TASKS,
        "draw 65000000000 images, expected at most 1000000000",
    ),
    "more queries than images": (params(episodes__mini__query=400), TASKS, "tasks need 401; lower `shot` or `query`"),
    "a bomb of aliases": (written("params.yaml", LAUGHS), TASKS, "line 2 has an alias"),
    "an alias of itself": (written("params.yaml", "a: &a [*a]\n"), TASKS, "line 1 has an alias"),
    "a key given twice": (written("params.yaml", "seed: 1\nseed: 2\n"), TASKS, "'seed' is given twice"),
    "a merged mapping": (written("params.yaml", "a: {b: 1}\n<<: {c: 2}\n"), TASKS, "not plain YAML"),
    "a tag that runs code": (
        written("params.yaml", "seed: !!python/object/apply:os.system ['touch ran']\n"),
        TASKS,
        "not plain YAML",
    ),
    "a tag of its own": (written("params.yaml", "seed: !mine 3\n"), TASKS, "line 1 has a tag (!mine)"),
    "a tag for a number": (
        written("params.yaml", "seed: !!int 3\n"),
        TASKS,
        "line 1 has a tag (tag:yaml.org,2002:int)",
    ),
    "a tag for bytes": (written("params.yaml", "a: 1\nseed: !!binary aGk=\n"), TASKS, "line 2 has a tag"),
    "a tag for a set": (written("params.yaml", "seed: !!set {a, b}\n"), TASKS, "line 1 has a tag"),
    "a tag of no type": (written("params.yaml", "seed: ! 3\n"), TASKS, "line 1 has a tag (!)"),
    "a tag of a key": (written("params.yaml", "!!str seed: 3\n"), TASKS, "line 1 has a tag"),
    "brackets without end": (written("params.yaml", "[" * 100_000), TASKS, "not plain YAML"),
    "a list as a key": (written("params.yaml", "? [1, 2]\n: 3\n"), TASKS, "not plain YAML"),
    "several documents": (written("params.yaml", "seed: 1\n---\nseed: 2\n"), TASKS, "not plain YAML"),
    "no text": (written("params.yaml", b"\xff\xfe\x00\x01"), TASKS, "not plain YAML"),
    "control characters": (written("params.yaml", "seed: \x00\x07\n"), TASKS, "not plain YAML"),
    "an empty file": (written("params.yaml", ""), TASKS, "holds NoneType"),
    "a file without end": (written("params.yaml", "x: " + "y" * 2_000_000), TASKS, "expected at most"),
    "a number of many digits": (written("params.yaml", f"seed: {'9' * 10_000}\n"), TASKS, "params.yaml"),
    "no file": (removed("params.yaml"), TASKS, "params.yaml: cannot be read"),
    "a dataset that is not named": (nothing, "stages episodes maxi", "got maxi, expected one dataset"),
}


@pytest.mark.parametrize("name", TABLE)
def test_wrong_parameters_get_one_sentence(name: str, judge: Callable[[Row], None]) -> None:
    judge(TABLE[name])
