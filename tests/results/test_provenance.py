"""Origins: the chain behind a record, read strictly, without a trace of who ran it or when."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repro.errors import BadInput
from repro.files import seal, sha256
from repro.results.origins import ORIGIN, Step, read_origin
from repro.results.provenance import all_steps, as_json, origin
from repro.results.store import Cell
from tests.report.synthetic import noisy, write_cell

CELL = Cell("mini", "castle", 1)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_cell(tmp_path / "results", CELL, [("gfsl", 5)], noisy(tasks=4))
    return tmp_path / "results"


def rewrite(results: Path, content: str) -> Path:
    """Another origin beside the record, sealed as an evaluation would."""
    folder = results / CELL.name / "0"
    (folder / ORIGIN).write_text(content)
    seal(folder, "tasks.parquet", ORIGIN)
    return folder


def test_a_cell_is_traced_to_its_record_and_down_to_its_dataset(results: Path) -> None:
    found = origin(results, results / CELL.name / "0")
    assert found.record == f"{results}/mini-castle-1shot/0/tasks.parquet"
    assert found.evaluation is not None
    assert found.sha256 == found.evaluation.output == sha256(results / CELL.name / "0" / "tasks.parquet")
    assert [step.stage for step in found.steps] == ["evaluate", "train", "pretrain", "episodes", "splits"]


def test_every_seed_of_a_cell_is_traced(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_cell(tmp_path, CELL, [("gfsl", 5)], noisy(tasks=4 + seed), seed=seed)
    origins = [origin(tmp_path, tmp_path / CELL.name / str(seed)) for seed in (0, 1)]
    assert {each.evaluation.cell for each in origins if each.evaluation} == {CELL.name}
    assert json.loads(as_json(origins, []))["cells"][CELL.name].keys() == {"0", "1"}


def test_equal_steps_are_one_and_others_are_not(results: Path) -> None:
    other = Cell("mini", "dfsl", 1)
    write_cell(results, other, [("gfsl", 5)], noisy(tasks=4))
    steps = all_steps(origin(results, results / cell.name / "0") for cell in (CELL, other))
    assert sorted(step.stage for step in steps.values()) == [
        *("episodes", "evaluate", "evaluate", "pretrain", "splits", "train", "train")
    ]
    seeds = [Step("train", "a", seed, {}, "c", "o", {}) for seed in (0, 0, 1)]
    assert seeds[0].key == seeds[1].key != seeds[2].key


def test_a_record_of_before_has_no_origin(results: Path) -> None:
    (results / CELL.name / "0" / ORIGIN).unlink()
    found = origin(results, results / CELL.name / "0")
    assert (found.evaluation, found.steps) == (None, [])
    assert json.loads(as_json([found], []))["cells"][CELL.name]["0"]["evaluation"] is None


def changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], str]:
    def text(facts: dict[str, Any]) -> str:
        change(facts)
        return json.dumps(facts)

    return text


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], str], str]] = {
    "no JSON": (lambda facts: "{", "not the origin of a record"),
    "bytes": (lambda facts: "\0", "not the origin of a record"),
    "a list": (lambda facts: "[]", "the file is list, expected a step"),
    "endless": (lambda facts: '{"inputs":' * 100_000, "not the origin of a record"),
    "without a seed": (changed(lambda facts: facts.pop("seed")), "seed is None, expected a whole number"),
    "a word for a seed": (changed(lambda facts: facts.update(seed="0")), "seed is '0', expected a whole number"),
    "an unknown field": (changed(lambda facts: facts.update(commit="abc")), "commit is unknown, expected stage, cell"),
    "a model that is none": (
        changed(lambda facts: facts["inputs"].update(model="x")),
        "inputs.model is str, expected a step",
    ),
    "a path for a hash": (
        changed(lambda facts: facts["inputs"]["model"].update(output="../../etc")),
        "inputs.model.output is '../../etc', expected a SHA-256",
    ),
    "settings that are none": (
        changed(lambda facts: facts["inputs"]["tasks"]["inputs"]["dataset"].update(settings=[])),
        "inputs.tasks.inputs.dataset.settings is [], expected the parameters",
    ),
    "of another stage": (changed(lambda facts: facts.update(stage="train")), "it is of train mini-castle-1shot"),
    "of another cell": (changed(lambda facts: facts.update(cell="x")), "it is of evaluate x, expected evaluate mini"),
    "of another record": (changed(lambda facts: facts.update(output="0" * 64)), f"its output is {'0' * 64}, expected"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_origin_is_refused_in_one_sentence(name: str, results: Path) -> None:
    break_it, expected = BROKEN[name]
    facts = json.loads((results / CELL.name / "0" / ORIGIN).read_text())
    folder = rewrite(results, break_it(facts))
    with pytest.raises(BadInput) as refused:
        read_origin(folder, CELL.name)
    message = str(refused.value)
    assert expected in message and "\n" not in message
    assert message.endswith("evaluate mini-castle-1shot again (`dvc repro` sees what is stale)")


def test_an_origin_that_was_edited_afterwards_is_refused(results: Path) -> None:
    file = results / CELL.name / "0" / ORIGIN
    file.write_text(file.read_text().replace("0.1", "0.2"))
    with pytest.raises(BadInput, match=r"origin\.json: content is"):
        read_origin(file.parent, CELL.name)
