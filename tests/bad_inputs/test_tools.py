"""Tools that are told something wrong, and run folders that are no records."""

import json
import os
import pickle
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from repro import paths
from repro.errors import BadInput
from repro.results.records import RECORDS, read_records
from repro.trained.released import to_released
from stages.settings.grid import read_grid
from stages.tracking import bad_input_exits
from stages.tracking.mongo import copy_run
from tests.bad_inputs.asking import (
    LINES,
    Damage,
    Row,
    ask,
    cut,
    ended,
    gone,
    nothing,
    params,
    removed,
    several,
    written,
)
from tools.editions.diagnosis import left_by
from tools.results_doctor import evaluation_runs, record_problems
from tools.scheduling.exclusive import exclusive_workspace
from tools.watching.runs import read_run

WEIGHTS = "tools/import_weights {here}/in.pth {here}/out --backbone castle_convnet4_small --data {here}/data/mini"
FOLDER = "tools/doctor image_folder root={here}/raw"


class Runs:
    """Unpickling this the usual way would make a folder."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("ran",)


def released(content: object) -> Damage:
    """A released file with this content."""
    return lambda folder: torch.save(content, folder / "in.pth")


def trained(folder: Path) -> None:
    """The workspace's own backbone as a released file."""
    state = load_file(folder / "models" / "pretrained" / "mini-standard" / "0" / "model.safetensors")
    torch.save({"params": to_released(state)}, folder / "in.pth")


def link(name: str) -> Damage:
    """A link of this name to params.yaml."""
    return lambda folder: (folder / name).symlink_to("params.yaml")


def piped_lock(folder: Path) -> None:
    """The lock of the workspace is a pipe."""
    (folder / ".cluster").mkdir()
    os.mkfifo(folder / ".cluster" / "lock")


OWN = f"{WEIGHTS} --method pretrained"
EXPORT = "tools/import_weights --export {here}/models/pretrained/mini-standard/0 {here}"
TABLE: dict[str, Row] = {
    **{
        f"scale: {word} for the workspace's lock": (damage, "tools/scale embedded", said)
        for word, damage, said in (
            ("a pipe", piped_lock, ".cluster/lock is no plain file, expected the lock of this workspace; move it away"),
            ("a folder", lambda folder: (folder / ".cluster" / "lock").mkdir(parents=True), "is no plain file"),
            ("a file above", written(".cluster", ""), ".cluster or a folder above it is a file, expected a folder"),
        )
    },
    "weights: a seed without data": (
        several(trained, params(seeds=[0, 1])),
        OWN,
        "data/mini/1: no dataset.json; expected a folder of the splits stage",
    ),
    "weights: no graphics card": (
        several(trained, params(machine__device="cuda")),
        OWN,
        "device 'cuda': 0 CUDA devices here",
    ),
    "weights: onto a model of a stage": (
        trained,
        OWN.replace("{here}/out", "{here}/models/pretrained/mini-standard"),
        "holds a model that was trained here, expected none or one that was imported before; name a new folder",
    ),
    "weights: a name that no line takes": (
        trained,
        OWN.replace("{here}/out", "{here}/$(x)"),
        "expected a folder named by letters, digits, . _ or -: paper/grid.yaml calls it by that name",
    ),
    "weights: heads of no dictionary": (trained, f"{OWN} --heads 2", "--heads was given with --method pretrained"),
    "weights: an export onto parameters": (nothing, f"{EXPORT}/params.yaml", "expected the name of a .pth file"),
    "weights: an export onto a link": (link("x.pth"), f"{EXPORT}/x.pth", "a link, expected the name of a .pth file"),
    "weights: a pickle of a function": (
        written("in.pth", pickle.dumps({"params": {"a": os.mkdir}}, protocol=2)),
        WEIGHTS,
        "not a checkpoint of tensors alone (unsupported GLOBAL posix.mkdir); fetch the file again",
    ),
    "repro: a wrong parameter": (params(seeds=["x"]), "tools/repro", "seeds.0 is 'x', expected"),
    "repro: no grid": (removed("paper/grid.yaml"), "tools/repro", "paper/grid.yaml: cannot be read"),
    "repro: a grid of something else": (
        written("paper/grid.yaml", "a: 1\n"),
        "tools/repro",
        "paper/grid.yaml: random is missing; trained is missing",
    ),
    "repro: a number with a zero before it": (nothing, "tools/repro --jobs 02", "'02' is no number from 1 to 1,024"),
    "repro: no jobs": (nothing, "tools/repro --jobs 0", "'0' is no number from 1"),
    "doctor: no grid": (removed("paper/grid.yaml"), "tools/doctor --results", "paper/grid.yaml: cannot be read"),
    "doctor: a grid that is no YAML": (cut("paper/grid.yaml"), "tools/doctor --results", "paper/grid.yaml: "),
    "doctor: a source there is not": (nothing, "tools/doctor imagenet", "invalid choice: 'imagenet'"),
    "doctor: no source": (nothing, "tools/doctor", "the following arguments are required: source"),
    "doctor: an option there is not": (nothing, f"{FOLDER} depth=3", "'depth=3' is no option of this source"),
    "doctor: no value": (nothing, "tools/doctor image_folder root", "expected key=value"),
    "doctor: an empty value": (nothing, f"{FOLDER[: -len('{here}/raw')]}", "'root=' gives no value, expected one"),
    "doctor: a missing option": (nothing, FOLDER, "no classes given, expected classes=… extra=…"),
    "doctor: a seed that is none": (nothing, f"{FOLDER} classes=[1,1,1] extra=1 --seed x", "'x' is no number from 0"),
    "weights: no file": (nothing, WEIGHTS, "in.pth: no such file"),
    "weights: an empty file": (written("in.pth", b""), WEIGHTS, "in.pth: refused"),
    "weights: text": (written("in.pth", "not weights"), WEIGHTS, "in.pth: refused"),
    "weights: a file that runs code": (released({"params": {}, "x": Runs()}), WEIGHTS, "in.pth: refused"),
    "weights: a list": (released([torch.zeros(1)]), WEIGHTS, "holds no dictionary `params`"),
    "weights: numbers for tensors": (released({"params": {"a": 1}}), WEIGHTS, "holds no dictionary `params`"),
    "weights: nothing that fits": (released({"params": {"cls.weight": torch.zeros(2, 2)}}), WEIGHTS, "does not fit"),
    "weights: a backbone there is not": (
        released({"params": {}}),
        WEIGHTS.replace("castle_convnet4_small", "x"),
        "unknown backbone 'x'",
    ),
    "weights: numbers for names": (released({"params": {1: torch.zeros(2)}}), WEIGHTS, "in.pth: 1 is float32"),
    "weights: sparse": (
        released({"params": {"a": torch.zeros(2, 2).to_sparse()}}),
        WEIGHTS,
        "sparse_coo on cpu, expected",
    ),
    "weights: complex": (released({"params": {"a": torch.zeros(2) + 0j}}), WEIGHTS, "is complex64, strided on cpu"),
    "weights: truth values": (released({"params": {"a": torch.ones(2) > 0}}), WEIGHTS, "is bool, strided on cpu"),
    "weights: eight bits": (
        released({"params": {"a": torch.zeros(2, dtype=torch.float8_e4m3fn)}}),
        WEIGHTS,
        "is float8_e4m3fn, strided on cpu",
    ),
    "cluster: resources of no stage": (
        several(
            params(machine__resources={"trian": {"num_cpus": 1}}),
            written("dvc.yaml", "stages: {train: {}}"),
            written("evaluate/dvc.yaml", "stages: {evaluate: {}}"),
        ),
        "tools/cluster --dry-run",
        "machine.resources names trian, expected one of train, evaluate; correct params.yaml",
    ),
    "cluster: negative retries": (nothing, "tools/cluster --retries -1", "'-1' is no number from 0"),
    "cluster: a billion processes": (nothing, "tools/cluster --local 1000000000", "is no number from 1 to 1,024"),
    "repro: a million processes": (nothing, "tools/repro --jobs 1000000", "is no number from 1 to 1,024"),
    "cluster: quotes without end": (nothing, "tools/cluster --through 'srun", "expected balanced quotes"),
    "cluster: an option twice": (
        nothing,
        "tools/cluster --local 2 --local 3",
        "--local is given 2 times, expected once",
    ),
    "edition: a path for a name": (
        nothing,
        "tools/edition check ../embedded",
        "edition is '../embedded', expected one",
    ),
    "edition: a folder's name": (nothing, "tools/edition rebuild embedded/", "edition is 'embedded/', expected one of"),
    "edition: a name for all": (nothing, "tools/edition list embedded", "list is about all editions, expected no name"),
    "edition: nowhere to write": (nothing, "tools/edition keep x --out y", "--out was given with keep, expected it"),
    "edition: a file to rebuild in": (
        nothing,
        "tools/edition rebuild embedded --out params.yaml",
        "params.yaml, which is no folder; expected one to rebuild in",
    ),
    "bundle: a path for a name": (nothing, "tools/bundle /etc", "edition is '/etc', expected one of those in"),
    "bundle: two things at once": (
        nothing,
        "tools/bundle --restore x.zip --models",
        "--restore was given with --models, expected nothing beside it",
    ),
    "doctor: a path for an edition": (nothing, "tools/doctor --edition ../x", "edition is '../x', expected one of"),
    "doctor: an edition and more": (nothing, "tools/doctor --edition x --fast", "--edition takes a name and nothing"),
    "compare: a device": (
        lambda folder: (folder / "t.csv").symlink_to("/dev/zero"),
        "tools/compare workspace {here}/t.csv",
        "t.csv: is a pipe or a device, expected CSV or Parquet",
    ),
    "compare: markup for a name": (nothing, "tools/compare workspace [/x].csv", "[/x].csv: not a table"),
    "compare: a folder to write": (
        nothing,
        "tools/compare workspace published --json {here}",
        "is a folder, expected the name of a file to write",
    ),
    "compare: a device to write": (
        nothing,
        "tools/compare workspace published --html /dev/null",
        "'/dev/null' is no plain file, expected the name of a file to write",
    ),
    "compare: its own input to write": (
        nothing,
        "tools/compare workspace theirs.csv --json theirs.csv",
        "'theirs.csv' is no .json file, expected a name that ends so",
    ),
    "bundle: the parameters to write": (nothing, "tools/bundle x --out params.yaml", "'params.yaml' is no .zip file"),
    "bundle: a link to write": (nothing, "tools/bundle x --out /dev/stdout", "'/dev/stdout' is no plain file"),
    "rehearse: a folder to write": (nothing, "tools/rehearse --report {here}", "is a folder, expected the name of a"),
    "rehearse: numerics of some": (
        nothing,
        "tools/rehearse --numerics --only mini",
        "--numerics was given with --only, expected nothing beside it",
    ),
    "sync: no folder": (nothing, "tools/sync --mlflow=", "'--mlflow=' gives no value, expected one"),
    "repro: no stage": (nothing, "tools/repro  --dry", "'' gives no value, expected one"),
    "status: two forms": (nothing, "tools/status --json --watch", "not allowed with argument --json"),
    "tune: a file that no setting goes into": (
        nothing,
        "tools/tune --apply --into tools/tuning.yaml",
        "--into: invalid choice: 'tools/tuning.yaml' (choose from",
    ),
    "tune: apply some": (nothing, "tools/tune --apply castle", "--apply was given with METHOD, expected --into"),
    "tune: all of some": (nothing, "tools/tune --all --shot 5", "--all was given with --shot, expected --jobs beside"),
    "tune: pre-training of a method": (
        nothing,
        "tools/tune castle --pretraining",
        "--pretraining was given with METHOD",
    ),
    "bench: costs of some": (
        nothing,
        "tools/bench --costs --only x",
        "--costs was given with --only, expected nothing",
    ),
    "weights: an export of a method": (
        nothing,
        "tools/import_weights --export {here}/x {here}/y --method castle --heads 2",
        "--export was given with --heads, expected SOURCE or TARGET beside it",
    ),
    "weights: an export to a device": (
        nothing,
        "tools/import_weights --export {here}/models/pretrained/mini-standard/0 /dev/null",
        "/dev/null: is a folder or a device or a link, expected",
    ),
    "stages: a seed of thousands of digits": (
        nothing,
        f"stages train mini-castle-1shot --seed {'9' * 5000}",
        "got mini-castle-1shot --seed 999",
    ),
    "scale: not in UTF-8": (nothing, "tools/scale \udcff", "'\\udcff' is not in UTF-8"),
    "sync: an option twice": (nothing, "tools/sync --all --all", "--all is given 2 times, expected once"),
    "weights: no heads": (released({"params": {}}), f"{WEIGHTS} --heads 0", "'0' is no number from 1"),
    "weights: no dataset": (nothing, "tools/import_weights {here}/in.pth {here}/out", "no --data given, expected"),
    "weights: a dataset that is none": (
        released({"params": {}}),
        f"{WEIGHTS}-x",
        "data/mini-x/0: no dataset.json; expected a folder of the splits stage",
    ),
    "weights: a folder to export to": (
        nothing,
        "tools/import_weights --export {here}/models/pretrained/mini-standard/0 {here}/paper",
        "paper: is a folder or a device or a link, expected the name of a .pth file",
    ),
    "weights: a folder that is none of ours": (
        released({"params": {}}),
        WEIGHTS.replace("{here}/out", "{here}/paper"),
        "paper: exists and holds no model",
    ),
    "weights: nothing to export": (
        nothing,
        "tools/import_weights --export {here}/x {here}/y",
        "no readable model",
    ),
    "bench: a name there is not": (nothing, "tools/bench --only eval_castel", "no benchmark is called eval_castel"),
    "bench: no repeats": (nothing, "tools/bench --only head_castle_64 --repeats 0", "'0' is no number from 1"),
    "omniboard: a port there is not": (nothing, "tools/omniboard --port 99999", "'99999' is no port, expected"),
    "omniboard: a port of thousands of digits": (
        nothing,
        f"tools/omniboard --port {'9' * 5000}",
        " is no port, expected",
    ),
    **{
        f"omniboard: {word} for a port": (nothing, f"tools/omniboard {option} {text}", f"'{text}' is no port, expected")
        for option in ("--port", "--mongo-port")
        for word, text in {"a number with a zero before it": "010", "a sign": "+9000", "other digits": "٩٠"}.items()
    },
    "omniboard: a word for a port": (nothing, "tools/omniboard --port x", "'x' is no port, expected"),
    "sync: a folder there is not": (nothing, "tools/sync --runs {here}/x", "is no folder, expected"),
    "status: nothing is planned": (
        gone("settings"),
        "tools/status",
        "settings: nothing is planned yet, expected a file per",
    ),
    "status: a plan that is cut off": (
        written("settings/train/x.json", "{"),
        "tools/status",
        "settings/train/x.json: not what `plan` writes",
    ),
    "status: no seconds": (nothing, "tools/status --watch 0", "'0' is no number from 1"),
    "rehearse: a name there is not": (
        nothing,
        "tools/rehearse --only minni",
        "--only is 'minni', expected",
    ),
    "rehearse: no GPU": (params(machine__device="cuda"), "tools/rehearse", "machine.device: device 'cuda': 0 CUDA"),
    "rehearse: no places": (nothing, "tools/rehearse --places 0", "'0' is no number from 1"),
    "test: no GPU": (nothing, "tools/test --gpu", "--gpu was given, but there is no GPU"),
    "sync: an unknown option": (nothing, "tools/sync --everything", "unrecognized arguments: --everything"),
}


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRO_MONGO_URL", raising=False)


@pytest.mark.parametrize("name", TABLE)
def test_tools_answer_with_one_sentence(name: str, judge: Callable[[Row], None], workspace: Path) -> None:
    judge(TABLE[name])
    assert not (workspace / "ran").exists()


def test_names_of_compared_files_are_shown_as_they_are(workspace: Path) -> None:
    file = workspace / "<i>[" / "<b>x]\x1b[2J.csv"
    written(str(file), f"cell,way,measure,mean\n{LINES['KNN']},5,hm,1\n")(workspace)
    answer = ask(workspace, f"tools/compare workspace {file} --html page.html")
    assert answer.code in (0, 1), answer.said
    assert "1 different" in answer.printed and "\x1b" not in answer.printed
    page = (workspace / "page.html").read_text()
    assert "&lt;b&gt;x]" in page and "<b>x]" not in page and "\x1b" not in page


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_in_use_is_named(workspace: Path, taken: int, bad_inputs) -> None:
    bad_inputs.tried()
    ask(workspace, f"tools/omniboard --port {taken}").require(f"port {taken} cannot be used")
    bad_inputs.answered()


@pytest.mark.parametrize("url", ["nonsense", "http://127.0.0.1/x", "mongodb://user:s3cret@host:port/x", "mongodb://"])
def test_a_server_that_is_none_is_named(url: str, workspace: Path, monkeypatch, bad_inputs) -> None:
    monkeypatch.setenv("REPRO_MONGO_URL", url)
    bad_inputs.tried()
    answer = ask(workspace, "tools/sync")
    answer.require("no usable Mongo URL")
    assert "s3cret" not in answer.said
    bad_inputs.answered()


@pytest.mark.parametrize("command", ["tools/scale embedded", "tools/bundle --restore x.zip", "tools/repro"])
def test_a_workspace_that_another_tool_changes_is_left_alone(command: str, workspace: Path, bad_inputs) -> None:
    bad_inputs.tried()
    with exclusive_workspace(workspace, "tools/scale"):
        ask(workspace, command).require("this workspace is held by tools/scale, process")
    bad_inputs.answered()


FORGED: dict[str, dict[str, object]] = {
    "no cell": {},
    "lists for names": {"cell": [1], "seed": {}},
    "words for steps": {"cell": "x", "seed": 0, "training": {"steps": "many"}},
    "a list for a training": {"cell": "x", "seed": 0, "training": [1]},
    "words for epochs": {"cell": "x", "seed": 0, "pretraining": {"epochs": "many"}},
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_run_ends_no_tool_that_looks_at_all_runs(name: str, workspace: Path, bad_inputs, monkeypatch) -> None:
    (run,) = (workspace / "runs").glob("*-evaluate-*")
    monkeypatch.chdir(workspace)
    (run / "config.json").write_text(json.dumps(FORGED[name]))
    bad_inputs.tried()
    facts(status="COMPLETED", result={"records": [1]})(run)
    evaluation_runs()
    facts(status="RUNNING")(run)
    points = (["loss", 1, 0.5, "2026-01-01T00:00:00"], ["val_prototype_accuracy", 1, 50, "2026-01-01T00:00:00"])
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(point)}\n" for point in points))
    found = read_run(run)
    assert found and found.steps is None and found.problem(datetime.now(UTC))
    assert set(evaluation_runs()[1]) <= {("x", 0)}
    bad_inputs.answered()


def test_a_forged_list_of_tasks_is_named(workspace: Path, bad_inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    cell, line = LINES["KNN"], read_grid().lines()[LINES["KNN"]]
    records = read_records(paths.results(cell, 0) / RECORDS)
    lists = {group: f"{digest}[:many]" for group, digest in records.metadata["tasks"].items()}
    bad_inputs.tried()
    forged = replace(records, metadata={**records.metadata, "tasks": lists})
    problems = list(record_problems(forged, line, cell, 0, "again", set()))
    assert any("was measured on task list" in problem and "[:many]" in problem for problem in problems), problems
    bad_inputs.answered()


@pytest.mark.parametrize("line", ["[" * 100_000, f'["loss", 1, {"9" * 400}, "2026-01-01T00:00:00"]', '{"a": 1}', "3"])
def test_a_forged_journal_of_scalars_ends_no_tool(line: str, workspace: Path, bad_inputs) -> None:
    (run,) = (workspace / "runs").glob("*-evaluate-*")
    facts(status="RUNNING")(run)
    (run / "metrics.jsonl").write_text(f"{line}\n")
    bad_inputs.tried()
    found = read_run(run)  # none, or one without that line
    assert found is None or not found.loss.steps
    bad_inputs.answered()


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", "", "3"])
def test_an_origin_that_is_none_is_named_beside_an_edition(content: str, workspace: Path, bad_inputs) -> None:
    written("data/mini/0/origin.json", content)(workspace)
    bad_inputs.tried()
    with pytest.raises(BadInput, match="origin.json (is missing or not JSON|holds)"):
        left_by(workspace / "data" / "mini" / "0")
    bad_inputs.answered()


# Run folders, where tools/sync reads them; no server is asked before the record is known to be whole.


def facts(**changes: object) -> Damage:
    def change(run: Path) -> None:
        content = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(content | changes))

    return change


BROKEN: dict[str, Damage] = {
    "no run.json": removed("run.json"),
    "a truncated run.json": cut("run.json"),
    "a run.json of something else": written("run.json", "[1]"),
    "no config": removed("config.json"),
    "a config of something else": written("config.json", "[]"),
    "a config that is no number": written("config.json", "NaN"),
    "a time that is none": facts(start_time="yesterday"),
    "no experiment": facts(experiment=None),
    "output that is no text": written("cout.txt", b"\xff\xfe\xfa"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_folder_that_is_no_record_is_named(name: str, workspace: Path, bad_inputs) -> None:
    run = sorted((workspace / "runs").glob("*-evaluate-*"))[0]
    BROKEN[name](run)
    bad_inputs.tried()

    def copy() -> None:
        with bad_input_exits():
            copy_run(run, database=None)  # type: ignore[arg-type]

    ended(copy).require(run.name)
    bad_inputs.answered()
