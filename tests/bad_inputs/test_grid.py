"""paper/grid.yaml and the names that stages are asked for."""

from collections.abc import Callable

import pytest

from tests.bad_inputs.asking import Row, grid, nothing, params, removed, written

PLAN = "stages plan"
TRAIN = "stages plan && stages train mini-castle-1shot"
KNN_LINE = {"dataset": "mini", "method": "mc_knn", "shot": 1, "ways": [5], "pretrained": "standard"}
PLANNED = "settings/train/mini-castle-1shot.json"

TABLE: dict[str, Row] = {
    "no name": (nothing, "stages train", "got no name, expected one name: python -m stages train NAME"),
    "two names": (nothing, "stages splits mini mini", "got mini mini, expected one name"),
    "a name that leads nowhere": (nothing, "stages train one", "'one', expected one of: experiment, mini-castle"),
    "a path for a name": (nothing, "stages train ../x", "got ../x, expected one name"),
    "a way that is none": (
        grid(trained__CASTLE__ways=[True]),
        PLAN,
        "grid.yaml: trained.mini-castle-1shot.ways.0 is True, expected: a number of ways from 1, or all\n",
    ),
    "a folder for a plan": (
        lambda folder: ((folder / PLANNED).unlink(), (folder / PLANNED).mkdir()),
        "stages train mini-castle-1shot",
        "mini-castle-1shot.json: is a folder, expected the file that `plan` writes",
    ),
    "a plan with words for seeds": (
        written(PLANNED, '{"seeds": "x"}'),
        "stages train mini-castle-1shot",
        "mini-castle-1shot.json: lists no seeds, expected what this version plans",
    ),
    "a missing key": (grid(trained__CASTLE={"dataset": "mini"}), PLAN, "trained.mini-castle-1shot.method is missing"),
    "an unknown key": (grid(trained__CASTLE__steps=3), PLAN, "unknown key trained.mini-castle-1shot.steps"),
    "an unknown group": (grid(more={}), PLAN, "unknown key more"),
    "a word for a number": (grid(trained__CASTLE__shot="x"), PLAN, "trained.mini-castle-1shot.shot is 'x', expected"),
    "a shot without tasks": (grid(trained__CASTLE__shot=3), PLAN, "shot is 3, mini has stored tasks of [1, 5] shots"),
    "a way without tasks": (grid(untrained__KNN__ways=[6]), PLAN, "way is 6, mini has stored tasks of 5 ways"),
    "a way that is no number": (grid(untrained__KNN__ways=["many"]), PLAN, "untrained.mini-mc_knn-1shot.ways.0"),
    "no ways": (grid(untrained__KNN__ways=[]), PLAN, "untrained.mini-mc_knn-1shot.ways is [], expected"),
    "a dataset there is not": (grid(untrained__KNN__dataset="maxi"), PLAN, "dataset is 'maxi', expected one of mini"),
    "a method there is not": (grid(untrained__KNN__method="knn"), PLAN, "method is 'knn', expected one of acastle"),
    "a path for a method": (grid(untrained__KNN__method="../x"), PLAN, "method is '../x', expected"),
    "a file that holds no method": (grid(untrained__KNN__method="base"), PLAN, "method is 'base', expected one of"),
    "pre-training there is not": (grid(untrained__KNN__pretrained="square"), PLAN, "pretrained is 'square', expected"),
    "a random backbone that is not made": (grid(random=["maxi"]), PLAN, "random: dataset is 'maxi', expected one of"),
    "an option for a name": (nothing, "stages train --help", "got --help, expected one name"),
    "a way twice": (grid(trained__CASTLE__ways=[5, 5]), PLAN, "ways are [5, 5], expected each once"),
    "a random backbone twice": (grid(random=["mini", "mini"]), PLAN, "random are ['mini', 'mini'], expected each once"),
    "a cell in two groups": (
        grid(
            untrained__CASTLE={"dataset": "mini", "method": "castle", "shot": 1, "ways": [5], "pretrained": "standard"}
        ),
        PLAN,
        "expected each once",
    ),
    "a command for a name": (grid(trained={"$(touch ran)": {}}), PLAN, "trained.$(touch ran)"),
    "a path as a name": (grid(trained={"../../../outer": {}}), PLAN, "trained.../../../outer"),
    "a base without a model": (
        nothing,
        "stages evaluate mini-castle_adapted-1shot",
        "models/cells/mini-castle-1shot/0: no readable model.json",
    ),
    "a base that is no cell": (grid(adapted__ADAPTED__base="none"), PLAN, "base is 'none', castle_adapted builds on"),
    "a base that is not trained": (
        grid(adapted__ADAPTED__base="mini-mc_knn-1shot"),
        PLAN,
        "base is 'mini-mc_knn-1shot', castle_adapted builds on a trained castle on mini; expected one of: mini-castle",
    ),
    "a base that is the cell itself": (
        grid(adapted__ADAPTED__base="mini-castle_adapted-1shot"),
        PLAN,
        "base is 'mini-castle_adapted-1shot'",
    ),
    "the experiment as a base": (grid(adapted__ADAPTED__base="experiment"), PLAN, "base is 'experiment'"),
    "a method that adapts among the trained": (
        grid(trained__CASTLE__method="castle_adapted"),
        PLAN,
        "castle_adapted adapts a trained castle, expected it under `adapted`",
    ),
    "a method of its own among the adapted": (
        grid(adapted__ADAPTED__method="teen"),
        PLAN,
        "teen builds on a trained teen on mini; expected one of: none yet",
    ),
    **{
        f"a cell with the name of {what}": (grid(**{f"untrained__{name}": KNN_LINE}), PLAN, f"{name} is {what}")
        for name, what in {"experiment": "the experiment in params.yaml", "mini-standard": "a backbone"}.items()
    },
    "pre-training of another kind": (
        grid(trained__CASTLE__method="dfsl", adapted={}),
        TRAIN,
        "was pre-trained as normalised, dfsl starts from cosine",
    ),
    "a trained method among the untrained": (
        grid(untrained__KNN__method="castle"),
        PLAN,
        "mini-mc_knn-1shot: castle has a training, which a line of `untrained` leaves out; put it under `trained`",
    ),
    "a base without training": (
        params(method="castle_adapted"),
        PLAN,
        "method is 'castle_adapted', which adapts a trained castle",
    ),
    "cells that differ in capitals alone": (
        grid(**{"untrained__Mini-castle-1shot": KNN_LINE}),
        PLAN,
        "cells mini-castle-1shot and Mini-castle-1shot differ in capitals alone, expected names apart",
    ),
    "a grid that is no mapping": (written("paper/grid.yaml", "- 1\n"), PLAN, "grid.yaml: holds list"),
    "a grid without groups": (written("paper/grid.yaml", "trained: {}\n"), PLAN, "grid.yaml: random is missing"),
    "a grid with a tag": (
        written("paper/grid.yaml", "trained: !!python/name:os.system\n"),
        PLAN,
        "grid.yaml: not plain YAML",
    ),
    "no grid": (removed("paper/grid.yaml"), PLAN, "grid.yaml: cannot be read"),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_wrong_grid_gets_one_sentence(name: str, judge: Callable[[Row], None]) -> None:
    judge(TABLE[name])
