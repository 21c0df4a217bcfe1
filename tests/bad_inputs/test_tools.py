"""Tools that get a wrong command line or file, and run folders that hold no record."""

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
    RunsCode,
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
EXPORT = "tools/import_weights --export {here}/models/pretrained/mini-standard/0"
# Commands that are wrong in themselves, and words of the answer.
COMMANDS = {
    f"stages train mini-castle-1shot --seed {'9' * 5000}": "got mini-castle-1shot --seed 999",
    "tools/bench --costs --only x": "--costs was given with --only, expected nothing",
    "tools/bench --only eval_castel": "no benchmark is called 'eval_castel', expected",
    "tools/bench --only head_castle_64 --repeats 0": "'0' is no number from 1",
    "tools/bundle --restore x.zip --models": "--restore was given with --models, expected nothing beside it",
    "tools/bundle /etc": "edition is '/etc', expected one of those in",
    "tools/bundle x --out /dev/stdout": "'/dev/stdout' is no plain file",
    "tools/bundle x --out params.yaml": "'params.yaml' is no .zip file",
    "tools/cluster --local 1000000000": "is no number from 1 to 1,024",
    "tools/cluster --local 2 --local 3": "--local is given 2 times, expected once",
    "tools/cluster --retries -1": "'-1' is no number from 0",
    "tools/cluster --through 'srun": "expected balanced quotes",
    "tools/compare workspace [/x].csv": "[/x].csv: not a table",
    "tools/compare workspace published --html /dev/null": "'/dev/null' is no plain file, expected the name of a file",
    "tools/compare workspace published --json {here}": "is a folder, expected the name of a file to write",
    "tools/compare workspace theirs.csv --json theirs.csv": "is no .json file, expected a name that ends so",
    "tools/doctor --edition ../x": "edition is '../x', expected one of",
    "tools/doctor --edition x --fast": "--edition takes a name and nothing",
    "tools/doctor image_folder root": "'root' is no option of this source, expected key=value",
    "tools/doctor image_folder root=": "'root=' gives no value, expected one",
    "tools/doctor imagenet": "invalid choice: 'imagenet'",
    "tools/doctor image_folder rot=/x": "'rot=/x' is no option of this source",
    "tools/doctor office_home": "no root given, expected root=",
    "tools/doctor office_home root=/x root=/y": "root is given twice",
    "tools/doctor office_home root=/x extra=&a[*a]": "has more values or levels than any settings, expected plain YAML",
    f"tools/doctor office_home root=/x extra={'[' * 5000}": "not plain YAML",
    "tools/doctor office_home root=/\udcff": "is not in UTF-8",
    "tools/doctor office_home root=/x --seed -1": "'-1' is no number from 0",
    "tools/doctor office_home root=/x --dataset mini": "give either it or a source",
    "tools/doctor --edition": "--edition: expected one argument",
    "tools/doctor --edition x --json": "--edition takes a name and nothing else",
    "tools/doctor --results --json": "--results takes nothing else",
    "tools/doctor --json": "the following arguments are required: source",
    "tools/doctor --dataset minni": "--dataset is 'minni', expected one of mini",
    "tools/doctor --dataset mini": "has the source glyphs",
    "tools/doctor": "the following arguments are required: source",
    "tools/edition forget x": "action is 'forget', expected one of list, keep, join, rebuild, check, pages;",
    "tools/edition keep": "keep is given no name, expected an edition's: `tools/edition keep NAME`",
    "tools/edition rebuild": "rebuild is given no name, expected an edition's: `tools/edition rebuild NAME`",
    "tools/edition check ../embedded": "edition is '../embedded', expected one",
    "tools/edition keep x --out y": "--out was given with keep, expected it",
    "tools/edition list embedded": "list is about all editions, expected no name",
    "tools/edition rebuild embedded --out params.yaml": "params.yaml, which is no folder; expected one to rebuild in",
    "tools/edition rebuild embedded/": "edition is 'embedded/', expected one of",
    "tools/import_weights --export x y --heads 2": "--export was given with --heads, expected SOURCE or TARGET",
    "tools/import_weights --export {here}/x {here}/y": "no readable model",
    "tools/import_weights {here}/in.pth {here}/out": "no --data given, expected",
    "tools/omniboard --address host:99999": "'99999' is no port",
    "tools/omniboard --address http://x": "expected HOST or HOST:PORT",
    "tools/omniboard --mongo-port -5": "'-5' is no port",
    "tools/omniboard --port -1": "'-1' is no port, expected a number from 1 to 65535",
    "tools/omniboard --port 0": "'0' is no port",
    "tools/omniboard --port 65536": "is no port",
    "tools/omniboard --port 9000 --port 9001": "--port is given 2 times",
    "tools/omniboard --port 99999": "'99999' is no port, expected",
    "tools/omniboard --port x": "'x' is no port, expected",
    f"tools/omniboard --port {'9' * 5000}": " is no port, expected",
    **{
        f"tools/omniboard {option} {text}": f"'{text}' is no port, expected"
        for option in ("--port", "--mongo-port")
        for text in ("010", "+9000", "٩٠")
    },
    "tools/omniboard --runs {here}/x": "is no folder",
    "tools/rehearse --numerics --only mini": "--numerics was given with --only, expected nothing beside it",
    "tools/rehearse --only minni": "--only is 'minni', expected",
    "tools/rehearse --places 0": "'0' is no number from 1",
    "tools/rehearse --report {here}": "is a folder, expected the name of a",
    "tools/repro  --dry": "'' gives no value, expected one",
    "tools/repro --jobs 0": "'0' is no number from 1",
    "tools/repro --jobs 02": "'02' is no number from 1 to 1,024",
    "tools/repro --jobs 1000000": "is no number from 1 to 1,024",
    "tools/scale \udcff": "'\\udcff' is not in UTF-8",
    "tools/status --json --watch": "not allowed with argument --json",
    "tools/status --watch 0": "'0' is no number from 1",
    "tools/sync --all --all": "--all is given 2 times, expected once",
    "tools/sync --everything": "unrecognized arguments: --everything",
    "tools/sync --mlflow=": "'--mlflow=' gives no value, expected one",
    "tools/sync --runs /tmp --al": "unrecognized arguments: --al",
    "tools/sync --runs /tmp \x1b[2J": "unrecognized arguments: \\x1b[2J",
    "tools/sync --runs /tmp/\x1b[31m\n": "'/tmp/\\x1b[31m\\n' is no folder",
    "tools/sync --runs=/tmp --runs /tmp": "--runs is given 2 times",
    "tools/sync --runs {here}/params.yaml": "is no folder, expected the one that holds",
    "tools/sync --runs {here}/x": "is no folder, expected",
    "tools/test --gpu": "--gpu was given, but there is no GPU",
    "tools/tune --all --shot 5": "--all was given with --shot, expected --jobs beside",
    "tools/tune --apply --into tools/tuning.yaml": "--into: invalid choice: 'tools/tuning.yaml' (choose from",
    "tools/tune --apply castle": "--apply was given with METHOD, expected --into",
    "tools/tune castle --pretraining": "--pretraining was given with METHOD",
    f"{EXPORT} /dev/null": "/dev/null: is a folder or a device or a link, expected",
    f"{EXPORT} {{here}}/paper": "paper: is a folder or a device or a link, expected the name of a .pth file",
    f"{EXPORT} {{here}}/params.yaml": "expected the name of a .pth file",
    f"{FOLDER} classes=[1,1,1] extra=1 --seed x": "'x' is no number from 0",
    f"{FOLDER} depth=3": "'depth=3' is no option of this source",
    FOLDER: "no classes given, expected classes=… extra=…",
    WEIGHTS: "in.pth: no such file",
}
# What a released file may hold that is no checkpoint, and words of the answer.
RELEASED: dict[str, tuple[object, str]] = {
    "a file that runs code": ({"params": {}, "x": RunsCode()}, "in.pth: refused"),
    "a list": ([torch.zeros(1)], "holds no dictionary `params`"),
    "tensors without params": ({"cls.weight": torch.zeros(2, 2)}, "holds no dictionary `params`"),
    "numbers for tensors": ({"params": {"a": 1}}, "holds no dictionary `params`"),
    "nothing that fits": ({"params": {"cls.weight": torch.zeros(2, 2)}}, "does not fit"),
    "numbers for names": ({"params": {1: torch.zeros(2)}}, "in.pth: 1 is float32"),
    "sparse": ({"params": {"a": torch.zeros(2, 2).to_sparse()}}, "sparse_coo on cpu, expected"),
    "complex": ({"params": {"a": torch.zeros(2) + 0j}}, "is complex64, strided on cpu"),
    "truth values": ({"params": {"a": torch.ones(2) > 0}}, "is bool, strided on cpu"),
    "eight bits": ({"params": {"a": torch.zeros(2, dtype=torch.float8_e4m3fn)}}, "is float8_e4m3fn, strided on cpu"),
}
# What is wrong with the workspace, the command, and words of the answer.
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
    "weights: no graphics card": (several(trained, params(machine__device="cuda")), OWN, "'cuda': 0 CUDA devices here"),
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
    "weights: an export onto a link": (
        link("x.pth"),
        f"{EXPORT} {{here}}/x.pth",
        "a link, expected the name of a .pth file",
    ),
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
    "doctor: no grid": (removed("paper/grid.yaml"), "tools/doctor --results", "paper/grid.yaml: cannot be read"),
    "doctor: a grid that is no YAML": (cut("paper/grid.yaml"), "tools/doctor --results", "paper/grid.yaml: "),
    "weights: an empty file": (written("in.pth", b""), WEIGHTS, "in.pth: refused"),
    "weights: text": (written("in.pth", "not weights"), WEIGHTS, "in.pth: refused"),
    "weights: a backbone there is not": (
        released({"params": {}}),
        WEIGHTS.replace("castle_convnet4_small", "x"),
        "unknown backbone 'x'",
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
    "compare: a device": (
        lambda folder: (folder / "t.csv").symlink_to("/dev/zero"),
        "tools/compare workspace {here}/t.csv",
        "t.csv: is a pipe or a device, expected CSV or Parquet",
    ),
    "weights: no heads": (released({"params": {}}), f"{WEIGHTS} --heads 0", "'0' is no number from 1"),
    "weights: a dataset that is none": (
        released({"params": {}}),
        f"{WEIGHTS}-x",
        "data/mini-x/0: no dataset.json; expected a folder of the splits stage",
    ),
    "weights: a folder that is none of ours": (
        released({"params": {}}),
        WEIGHTS.replace("{here}/out", "{here}/paper"),
        "paper: exists and holds no model",
    ),
    "status: nothing is planned": (gone("settings"), "tools/status", "settings: nothing is planned yet, expected"),
    "status: a plan that is cut off": (
        written("settings/train/x.json", "{"),
        "tools/status",
        "settings/train/x.json: not what `plan` writes",
    ),
    "rehearse: no GPU": (params(machine__device="cuda"), "tools/rehearse", "machine.device: device 'cuda': 0 CUDA"),
}


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRO_MONGO_URL", raising=False)


@pytest.mark.parametrize("name", TABLE)
def test_tools_answer_with_one_sentence(name: str, judge: Callable[..., None]) -> None:
    judge(*TABLE[name])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: ascii(command)[1:80])
def test_a_command_that_cannot_be_meant_gets_one_sentence(command: str, judge: Callable[..., None]) -> None:
    judge(nothing, command, COMMANDS[command])


@pytest.mark.parametrize("name", RELEASED)
def test_what_is_no_checkpoint_is_named_and_not_run(name: str, judge: Callable[..., None]) -> None:
    content, expected = RELEASED[name]
    judge(released(content), WEIGHTS, expected)


def test_names_of_compared_files_are_shown_as_they_are(workspace: Path) -> None:
    file = workspace / "<i>[" / "<b>x]\x1b[2J.csv"
    written(str(file), f"cell,way,measure,mean\n{LINES['KNN']},5,hm,1\n")(workspace)
    answer = ask(workspace, f"tools/compare workspace {file} --html page.html")
    assert answer.code == 1, answer.said
    assert ask(workspace, f"tools/compare {file} {file}").code == 0, "the exit code is for CI: nothing differs"
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
