"""What a run leaves under runs/, however it ends."""

import contextlib
import dataclasses
import json
import logging
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from repro.errors import BadInput
from repro.files import damage, read_seal
from stages.tracking import experiment, machine, observer, record, recorded_runs, run_folders, runs_folder
from stages.tracking.files import plain, read_scalars
from stages.tracking.runs import create
from tests.paths import ROOT
from tests.tracking import toy
from tests.tracking.conftest import only_run, read
from tests.tracking.toy import record_toy
from tests.waiting import wait_for


def test_a_run_records_config_seed_commit_packages_host_scalars_result_artifacts_and_output(tmp_path):
    result = record_toy(tmp_path, seed=7, steps=4)
    folder = only_run(tmp_path)
    run = read(folder)
    assert run["status"] == "COMPLETED"
    assert run["result"] == result == {"hm": 67.0, "acc": 77.0, "ausuc": 0.5}
    assert read(folder, "config.json") == plain(dataclasses.asdict(toy.ToySettings(seed=7, steps=4)))
    assert [(entry["commit"], entry["dirty"]) for entry in run["experiment"]["repositories"]] == [machine.commit(ROOT)]
    assert run["experiment"]["mainfile"] == "tests/tracking/toy.py"
    assert any(line.startswith("torch==") for line in run["experiment"]["dependencies"])
    sources = dict(run["experiment"]["sources"])
    assert {"tests/tracking/toy.py", "stages/tracking/experiment.py", "repro/errors.py"} <= sources.keys()
    assert (tmp_path / sources["repro/errors.py"]).read_bytes() == (ROOT / "repro/errors.py").read_bytes()
    assert run["host"]["cpu"] and run["host"]["hostname"] and "gpus" in run["host"]
    assert run["artifacts"] == ["metrics.json"]
    assert (folder / "artifacts" / "metrics.json").read_bytes() == (ROOT / "tests/tracking/toy.py").read_bytes()
    losses = read(folder, "metrics.json")["loss"]
    assert losses["steps"] == [0, 1, 2, 3] and losses["values"] == [17.0, 8.5, 17 / 3, 4.25]
    bar, done = (folder / "cout.txt").read_text().splitlines()
    assert "4/4" in bar and done == "done with mini-castle-1shot"


def test_a_failed_run_keeps_its_traceback_and_its_last_words(tmp_path):
    with pytest.raises(RuntimeError, match="boom"):
        record_toy(tmp_path, trouble="crash")
    run = read(only_run(tmp_path))
    assert run["status"] == "FAILED"
    assert 'raise RuntimeError("boom")' in "".join(run["fail_trace"])
    assert "done with" in (only_run(tmp_path) / "cout.txt").read_text()
    assert len(read_scalars(only_run(tmp_path))["loss"]["steps"]) == 5


def test_bad_input_is_one_sentence_and_exit_code_2_with_the_traceback_only_in_the_record(tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_:
        record_toy(tmp_path, trouble="input", steps=0)
    assert exit_.value.code == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line and "0it" not in line]
    assert said == ["error: shot is 3, expected 1 or 5; set shot in params.yaml"]
    run = read(only_run(tmp_path))
    assert run["status"] == "FAILED" and "BadInput" in "".join(run["fail_trace"])


def test_the_librarys_log_lines_are_shown_and_kept(tmp_path, monkeypatch, capsys):
    library = logging.getLogger("repro.data")
    monkeypatch.setattr(toy, "print", lambda *_: library.info("a library's word"), raising=False)
    record_toy(tmp_path)
    assert "a library's word" in capsys.readouterr().err
    assert "a library's word" in (only_run(tmp_path) / "cout.txt").read_text()
    assert not [handler for handler in logging.getLogger().handlers if type(handler) is logging.StreamHandler]


def test_a_run_without_a_seed_is_seeded_with_0(tmp_path):
    def unseeded(_settings, _log):
        import torch

        return torch.rand(()).item()

    draws = [record(unseeded, {}, stage="unseeded", cell="x", runs=tmp_path) for _ in range(2)]
    assert draws[0] == draws[1]
    assert [read(folder, "config.json") for folder in tmp_path.glob("2*")] == [{"seed": 0}] * 2


def test_names_of_parallel_runs_never_meet(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: create(tmp_path, "train", "cell"), range(200)))
    assert len(set(folders)) == 200


def test_a_name_that_is_no_file_name_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="'a/b' cannot name a run"):
        create(tmp_path, "train", "a/b")


def test_a_full_disk_loses_no_scalar(tmp_path, monkeypatch, caplog, faults):
    faults.tried()
    appends = iter([OSError(28, "No space left on device")])

    def append(*arguments):
        if error := next(appends, None):
            raise error
        real(*arguments)

    real = observer.append_scalars
    monkeypatch.setattr(observer, "append_scalars", append)
    monkeypatch.setattr(experiment, "BEAT_SECONDS", 0.05)
    record_toy(tmp_path, steps=10, pause=0.05)
    assert read_scalars(only_run(tmp_path))["loss"]["steps"] == list(range(10))
    assert "No space left" in caplog.text
    faults.survived()


def test_runs_of_a_queued_experiment_go_to_the_repository_it_was_queued_from(tmp_path, monkeypatch):
    assert runs_folder() == ROOT / "runs"
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))  # as DVC sets it in its temporary copy
    assert runs_folder() == tmp_path / "runs"


# Where a run happened


@pytest.fixture
def repository(tmp_path):
    def git(*arguments):
        command = ["git", "-c", "user.name=n", "-c", "user.email=e", *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    folder = tmp_path / "repository"
    folder.mkdir()
    git("init", "--quiet")
    for number in (1, 2):
        (folder / "file").write_text(str(number))
        git("add", "file")
        git("commit", "--quiet", "--message", str(number))
    return folder, git


def test_the_commit_is_known_in_a_shallow_clone_and_changes_show(repository, tmp_path):
    folder, git = repository
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{folder}", tmp_path / "shallow"], check=True)
    assert machine.commit(tmp_path / "shallow") == (git("rev-parse", "HEAD"), False)
    (tmp_path / "shallow" / "file").write_text("3")
    assert machine.commit(tmp_path / "shallow")[1] is True


@pytest.mark.parametrize("pack", [False, True])
def test_the_commit_is_known_without_a_git_program(repository, monkeypatch, pack):
    folder, git = repository
    head = git("rev-parse", "HEAD")
    if pack:
        git("pack-refs", "--all")
    monkeypatch.setenv("PATH", "")
    assert machine.commit(folder) == (head, None)


def test_a_branch_whose_name_is_in_no_utf8_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "HEAD").write_bytes(b"ref: refs/heads/\xff\n")
    (tmp_path / "packed-refs").write_bytes(b"0123 refs/heads/\xff\n")
    assert machine._commit_without_git(tmp_path) == "0123"


def test_outside_a_repository_there_is_no_commit(tmp_path):
    assert machine.commit(tmp_path) == (None, None)


# Which run wrote an output


def test_an_output_leads_to_the_newest_run_that_completed_with_it(tmp_path):
    first, second = "1" * 64, "2" * 64
    record_toy(tmp_path, outputs={"model": first, "curve": second})
    record_toy(tmp_path, outputs={"model": first, "forged": "../../outside"})
    with pytest.raises(RuntimeError):
        record_toy(tmp_path, outputs={"model": second}, trouble="crash")
    older, newer, _ = run_folders(tmp_path)
    links = {link.name: link for link in (tmp_path / "by_output").iterdir()}
    assert {name: link.resolve() for name, link in links.items()} == {first: newer, second: older}
    assert all(not link.readlink().is_absolute() for link in links.values())
    assert read(links[first])["result"]["outputs"]["model"] == first
    assert [run.status for run in recorded_runs(tmp_path, "toy")] == ["COMPLETED", "COMPLETED", "FAILED"]


def test_a_file_system_without_links_is_no_error(tmp_path, monkeypatch, faults):
    faults.tried()
    monkeypatch.setattr(Path, "symlink_to", lambda *_, **__: (_ for _ in ()).throw(PermissionError(1, "no links")))
    record_toy(tmp_path, outputs={"model": "1" * 64})
    assert read(only_run(tmp_path))["status"] == "COMPLETED"
    faults.survived()


# A run that did not finish


def test_an_interrupted_run_is_named_by_the_one_that_continues_it(tmp_path):
    with pytest.raises(SystemExit) as exit_:
        record_toy(tmp_path, steps=10, trouble="interrupt")
    assert exit_.value.code == 130
    left = only_run(tmp_path)
    assert read(left)["status"] == "INTERRUPTED"
    assert read(left, "metrics.json")["loss"]["steps"] == list(range(7))
    with pytest.raises(SystemExit):
        record_toy(tmp_path, steps=10, trouble="interrupt")
    record_toy(tmp_path, steps=10)
    _, same, other = run_folders(tmp_path)
    assert read(same)["meta"]["continues"] == left.name
    assert "continues" not in read(other)["meta"]  # it was told something else


def test_a_finished_run_is_not_continued(tmp_path):
    for _ in range(2):
        record_toy(tmp_path)
    assert not any("continues" in read(folder)["meta"] for folder in run_folders(tmp_path))


def test_a_cell_whose_name_begins_like_another_is_not_mistaken_for_it(tmp_path):
    for cell in ("a-b", "b", "a"):
        with pytest.raises(SystemExit):
            record_toy(tmp_path, cell=cell, trouble="interrupt", steps=10)
    assert not any("continues" in read(folder)["meta"] for folder in run_folders(tmp_path))


def test_a_killed_run_is_marked_by_the_next_and_one_that_still_runs_is_left_alone(tmp_path, start, faults):
    faults.tried()
    settings = {"steps": 400, "pause": 0.05}
    process = start(beat=0.2, **settings)
    runs = tmp_path / "runs"
    folder = wait_for(lambda: next(runs.glob("2*/run.json"), None)).parent
    wait_for(lambda: len(read_scalars(folder).get("loss", {"steps": []})["steps"]) > 5)
    record_toy(runs, **settings | {"first": 399})
    assert read(folder)["status"] == "RUNNING"
    process.kill()
    process.wait()
    record_toy(runs, **settings | {"first": 399})
    killed, _, last = run_folders(runs)
    assert killed == folder and read(killed)["status"] == "INTERRUPTED"
    assert read(killed)["meta"]["note"] == f"killed; found by {last.name}"
    assert read(killed, "metrics.json")["loss"]["steps"][:5] == list(range(5))
    faults.survived()


def test_a_run_that_was_killed_and_started_again_at_once_is_continued(tmp_path, start, faults):
    faults.tried()
    process = start(steps=400, pause=0.05)
    folder = wait_for(lambda: next((tmp_path / "runs").glob("2*/config.json"), None)).parent
    process.kill()
    process.wait()
    process = start(steps=400, pause=0.05)
    again = wait_for(lambda: [file for file in (tmp_path / "runs").glob("2*/run.json") if file.parent != folder])
    assert read(again[0].parent)["meta"]["continues"] == folder.name
    faults.survived()


@pytest.mark.parametrize("damage", ["", "[1]", "{", "null"])
def test_a_record_that_cannot_be_read_is_in_nobodys_way(damage, tmp_path, faults):
    faults.tried()
    record_toy(tmp_path)
    (only_run(tmp_path) / "run.json").write_text(damage)
    record_toy(tmp_path)
    assert [run.status for run in recorded_runs(tmp_path, "toy")] == ["COMPLETED"]
    faults.survived()


@pytest.mark.parametrize("trouble", ["", "swallow"])  # one is code that catches every exception
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_recorded_as_an_interrupt(number, trouble, tmp_path, start, faults):
    faults.tried()
    process = start(steps=400, pause=0.05, trouble=trouble, beat=0.5)
    folder = wait_for(lambda: next((tmp_path / "runs").glob("2*/metrics.jsonl"), None)).parent
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in said
    assert read(folder)["status"] == "INTERRUPTED"
    faults.survived()


def test_a_signal_that_is_ignored_stays_ignored(tmp_path, start):
    process = start(steps=20, pause=0.05, ignored=int(signal.SIGHUP), beat=0.5)
    wait_for(lambda: next((tmp_path / "runs").glob("2*/metrics.jsonl"), None))
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_last_heartbeat_on_a_slow_disk_is_waited_for(tmp_path, monkeypatch):
    log = observer.RunFolder.log_metrics

    def log_late(*arguments, **metrics):
        time.sleep(2.5)  # Sacred would wait for two
        log(*arguments, **metrics)

    monkeypatch.setattr(observer.RunFolder, "log_metrics", log_late)
    record_toy(tmp_path, steps=5)
    folder = only_run(tmp_path)
    assert json.loads((folder / "metrics.json").read_text())["loss"]["steps"] == [0, 1, 2, 3, 4]


def test_a_torn_last_line_of_the_journal_is_left_out(tmp_path, faults):
    faults.tried()
    record_toy(tmp_path, steps=3)
    journal = only_run(tmp_path) / "metrics.jsonl"
    journal.write_text(journal.read_text() + '["loss", 3, 0.')
    assert read_scalars(only_run(tmp_path))["loss"]["steps"] == [0, 1, 2]
    faults.survived()


# Credentials


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://alice:{}@127.0.0.1:9/sacred",
        "mongodb://alice:{}@127.0.0.1:port/sacred",
        "alice:{}@127.0.0.1:9/sacred",
        "mongodb://127.0.0.1:9/sacred?proxyHost=h&proxyUsername=alice&proxyPassword={}",
        "mongodb://127.0.0.1:9/sacred?authMechanismProperties=AWS_SESSION_TOKEN:{}&tls={}",
        "mongodb://alice:{}@[::1/sacred",
    ],
)
def test_the_servers_password_reaches_neither_record_nor_output(url, tmp_path, start):
    process = start({"REPRO_MONGO_URL": url.replace("{}", "s3cret%2Fword")}, steps=1)
    said = "".join(process.communicate(timeout=120))
    assert process.returncode == 0 and "Mongo" in said
    files = [file for file in only_run(tmp_path / "runs").rglob("*") if file.is_file()]
    kept = "".join(file.read_text() for file in files)
    for secret in ("s3cret%2Fword", "s3cret/word", "alice"):
        assert secret not in kept and secret not in said


@pytest.mark.parametrize("password", ["2026", "null", "status"])
def test_a_password_that_is_an_ordinary_word_damages_no_record(password, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_MONGO_URL", f"mongodb://bob:{password}@127.0.0.1:9/sacred")
    record_toy(tmp_path, dataset=f"{password} as a value")
    folder = only_run(tmp_path)
    assert read(folder)["status"] == "COMPLETED" and read(folder)["start_time"][:2] == "20"
    assert read(folder, "config.json")["dataset"] == f"{password} as a value"


def test_a_long_word_is_recorded_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_MONGO_URL", "mongodb://bob:word@127.0.0.1:9/sacred")
    word = "a" * 80_000 + "://" + "b" * 80_000
    record_toy(tmp_path, dataset=word, cell="x")
    assert read(only_run(tmp_path), "config.json")["dataset"] == word


@pytest.mark.parametrize("trouble", ["", "crash", "input"])
def test_an_ended_run_is_sealed_whole(trouble, tmp_path):
    with contextlib.suppress(RuntimeError, SystemExit):
        toy.record_toy(tmp_path / "runs", trouble=trouble)
    run = only_run(tmp_path / "runs")
    assert damage(run) == []
    assert {"run.json", "config.json", "metrics.json", "metrics.jsonl", "cout.txt"} <= read_seal(run).keys()


@pytest.mark.parametrize("forged", ["[]", '{"status": "RUNNING"}', '{"status": "RUNNING", "meta": 3}', "", "{}"])
def test_a_forged_folder_of_the_same_cell_does_not_stop_a_run(forged, tmp_path):
    folder = tmp_path / "runs" / "99991231-235959-999-toy-mini-castle-1shot-abcdef"
    (folder / ".lock").mkdir(parents=True)
    (folder / "run.json").write_text(forged)
    (folder / "metrics.jsonl").write_text('[[1], 2, 3, 4]\n"x"\n')
    (tmp_path / "runs" / "20260101-000000-000-toy-mini-castle-1shot-abcdef").touch()
    assert toy.record_toy(tmp_path / "runs")["hm"] == 60.0


def test_the_instructions_that_decide_the_last_bits_are_recorded(tmp_path):
    toy.record_toy(tmp_path / "runs")
    host = read(only_run(tmp_path / "runs"))["host"]
    assert host["cpu_capability"] == torch.backends.cpu.get_cpu_capability()


@pytest.mark.parametrize(
    "name",
    [
        *("MKL_CBWR", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_DEFAULT_FPMATH_MODE"),
        *("OMP_THREAD_LIMIT", "OMP_DYNAMIC", "MKL_NUM_THREADS", "KMP_DETERMINISTIC_REDUCTION", "OPENBLAS_CORETYPE"),
        *("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "GLIBC_TUNABLES", "NPY_DISABLE_CPU_FEATURES"),
    ],
)
def test_a_variable_that_changes_the_last_bits_is_recorded_and_no_other(name, monkeypatch):
    monkeypatch.setenv(name, "as given")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    kept = machine.host()["ENV"]
    assert kept[name] == "as given" and "secret" not in kept.values() and "PATH" not in kept
