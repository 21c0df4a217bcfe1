"""What a run leaves under runs/, however it ends."""

import contextlib
import json
import logging
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from repro.errors import BadInput
from stages import _experiment
from stages import _tracking_machine as machine
from stages._tracking import create, read_scalars, redact, runs_folder
from tests.tracking import toy
from tests.tracking.conftest import ROOT, only_run, read, wait_for


def test_a_run_records_config_seed_commit_packages_host_scalars_result_artifacts_and_output(tmp_path):
    result = toy.record(tmp_path, seed=7, steps=4)
    folder = only_run(tmp_path)
    run = read(folder)
    assert run["status"] == "COMPLETED"
    assert run["result"] == result == {"hm": 67.0, "acc": 77.0, "ausuc": 0.5}
    assert read(folder, "config.json") == {**toy.DEFAULTS, "cell": "mini-castle-1shot", "seed": 7, "steps": 4}
    assert [(entry["commit"], entry["dirty"]) for entry in run["experiment"]["repositories"]] == [machine.commit(ROOT)]
    assert run["experiment"]["mainfile"] == "tests/tracking/toy.py"
    assert any(line.startswith("torch==") for line in run["experiment"]["dependencies"])
    sources = dict(run["experiment"]["sources"])
    assert {"tests/tracking/toy.py", "stages/_experiment.py", "repro/errors.py"} <= sources.keys()
    assert (tmp_path / sources["repro/errors.py"]).read_bytes() == (ROOT / "repro/errors.py").read_bytes()
    assert run["host"]["cpu"] and run["host"]["hostname"] and "gpus" in run["host"]
    assert run["artifacts"] == ["metrics.json"]
    assert (folder / "artifacts" / "metrics.json").read_text().startswith("step,loss\n0,1.0")
    losses = read(folder, "metrics.json")["loss"]
    assert losses["steps"] == [0, 1, 2, 3] and losses["values"] == [17.0, 8.5, 17 / 3, 4.25]
    bar, done = (folder / "cout.txt").read_text().splitlines()
    assert "4/4" in bar and done == "done with mini-castle-1shot"


def test_a_failed_run_keeps_its_traceback_and_its_last_words(tmp_path):
    with pytest.raises(RuntimeError, match="boom"):
        toy.record(tmp_path, trouble="crash")
    run = read(only_run(tmp_path))
    assert run["status"] == "FAILED"
    assert 'raise RuntimeError("boom")' in "".join(run["fail_trace"])
    assert "done with" in (only_run(tmp_path) / "cout.txt").read_text()
    assert len(read_scalars(only_run(tmp_path))["loss"]["steps"]) == 5


def test_bad_input_is_one_sentence_and_exit_code_2_with_the_traceback_only_in_the_record(tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_:
        toy.record(tmp_path, trouble="input", steps=0)
    assert exit_.value.code == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line and "0it" not in line]
    assert said == ["error: shot is 3, expected 1 or 5; set shot in params.yaml"]
    run = read(only_run(tmp_path))
    assert run["status"] == "FAILED" and "BadInput" in "".join(run["fail_trace"])


def test_the_librarys_log_lines_are_shown_and_kept(tmp_path, monkeypatch, capsys):
    library = logging.getLogger("repro.data")
    monkeypatch.setattr(toy, "print", lambda *_: library.info("a library's word"), raising=False)
    toy.record(tmp_path)
    assert "a library's word" in capsys.readouterr().err
    assert "a library's word" in (only_run(tmp_path) / "cout.txt").read_text()
    assert not [handler for handler in logging.getLogger().handlers if type(handler) is logging.StreamHandler]


def test_a_run_without_a_seed_is_seeded_with_0(tmp_path):
    from stages._experiment import Experiment, prepare, run

    ex = prepare(Experiment("unseeded"))

    @ex.main
    def unseeded() -> float:
        import torch

        return torch.rand(()).item()

    draws = [run(ex, {}, stage="unseeded", cell="x", runs=tmp_path) for _ in range(2)]
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
    from stages import _experiment

    appends = iter([OSError(28, "No space left on device")])

    def append(*arguments):
        if error := next(appends, None):
            raise error
        real(*arguments)

    real = _experiment.append_scalars
    monkeypatch.setattr(_experiment, "append_scalars", append)
    monkeypatch.setattr(_experiment, "BEAT_SECONDS", 0.05)
    toy.record(tmp_path, steps=10, pause=0.05)
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


def test_outside_a_repository_there_is_no_commit(tmp_path):
    assert machine.commit(tmp_path) == (None, None)


# Continuing a run


def test_an_interrupted_run_is_continued_as_the_same_run(tmp_path):
    config = {"steps": 10, "trouble": "interrupt", "checkpoint": str(tmp_path / "checkpoint")}
    with pytest.raises(SystemExit) as exit_:
        toy.record(tmp_path / "runs", **config)
    assert exit_.value.code == 130
    folder = only_run(tmp_path / "runs")
    first = read(folder)
    assert first["status"] == "INTERRUPTED"
    assert read(folder, "metrics.json")["loss"]["steps"] == list(range(7))

    (tmp_path / "checkpoint").write_text("4")  # steps 4 to 6 are done again
    toy.record(tmp_path / "runs", **config)
    run = read(only_run(tmp_path / "runs"))
    assert run["status"] == "COMPLETED" and run["start_time"] == first["start_time"]
    assert len(run["meta"]["attempts"]) == 2
    assert read(folder, "metrics.json")["loss"]["steps"] == list(range(10))
    assert (folder / "cout.txt").read_text().count("training:") == 2


def test_a_run_that_still_runs_is_left_alone(tmp_path, start):
    runs, checkpoint = tmp_path / "runs", tmp_path / "checkpoint"
    config = {"steps": 400, "pause": 0.05, "checkpoint": str(checkpoint)}
    process = start(beat=0.2, **config)
    folder = wait_for(lambda: runs.is_dir() and next(runs.glob("2*"), None))
    wait_for(lambda: len(read_scalars(folder).get("loss", {"steps": []})["steps"]) > 5)

    checkpoint.write_text("398")
    toy.record(runs, **config)  # the same configuration, but another process has that run
    assert len(list(runs.glob("2*"))) == 2
    process.kill()
    process.wait()
    assert read(folder)["status"] == "RUNNING" and len(read(folder)["meta"]["attempts"]) == 1


def test_a_killed_run_is_found_again_by_its_configuration(tmp_path, start, faults):
    faults.tried()
    runs, checkpoint = tmp_path / "runs", tmp_path / "checkpoint"
    process = start(steps=400, pause=0.05, checkpoint=str(checkpoint))
    folder = wait_for(lambda: runs.is_dir() and next(runs.glob("2*/run.json"), None)).parent
    process.kill()
    process.wait()
    checkpoint.write_text("399")
    toy.record(runs, steps=400, pause=0.05, checkpoint=str(checkpoint))
    assert only_run(runs) == folder and read(folder)["status"] == "COMPLETED"
    faults.survived()


def test_sigterm_is_recorded_as_an_interrupt(tmp_path, start, faults):
    faults.tried()
    process = start(steps=400, pause=0.05)
    folder = wait_for(lambda: next((tmp_path / "runs").glob("2*/run.json"), None)).parent
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "Traceback" not in said
    assert read(folder)["status"] == "INTERRUPTED"
    faults.survived()


def test_sigterm_is_not_swallowed_by_code_that_catches_every_exception(tmp_path, start, faults):
    faults.tried()
    process = start(steps=400, pause=0.05, trouble="swallow")
    folder = wait_for(lambda: next((tmp_path / "runs").glob("2*/run.json"), None)).parent
    process.terminate()
    process.communicate(timeout=15)
    assert process.returncode == 143
    assert read(folder)["status"] == "INTERRUPTED"
    faults.survived()


def test_a_last_heartbeat_on_a_slow_disk_is_waited_for(tmp_path, monkeypatch):
    log = _experiment.RunFolder.log_metrics

    def log_late(*arguments, **metrics):
        time.sleep(2.5)  # Sacred would wait for two
        log(*arguments, **metrics)

    monkeypatch.setattr(_experiment.RunFolder, "log_metrics", log_late)
    toy.record(tmp_path, steps=5)
    folder = only_run(tmp_path)
    assert json.loads((folder / "metrics.json").read_text())["loss"]["steps"] == [0, 1, 2, 3, 4]


def test_a_finished_run_is_not_continued(tmp_path):
    for trouble in ("", "", "crash", "crash"):
        with contextlib.suppress(RuntimeError):
            toy.record(tmp_path, trouble=trouble)
    assert len(list(tmp_path.glob("2*"))) == 4


def test_a_cell_whose_name_begins_like_another_is_not_mistaken_for_it(tmp_path):
    with pytest.raises(SystemExit):
        toy.record(tmp_path, cell="a-b", trouble="interrupt", steps=10)
    toy.record(tmp_path, cell="b", steps=10)
    with pytest.raises(SystemExit):
        toy.record(tmp_path, cell="a", trouble="interrupt", steps=10)
    assert len(list(tmp_path.glob("2*"))) == 3


def test_a_torn_last_line_of_the_journal_is_left_out(tmp_path, faults):
    faults.tried()
    toy.record(tmp_path, steps=3)
    journal = only_run(tmp_path) / "metrics.jsonl"
    journal.write_text(journal.read_text() + '["loss", 3, 0.')
    assert read_scalars(only_run(tmp_path))["loss"]["steps"] == [0, 1, 2]
    faults.survived()


# Credentials


def test_credentials_are_nowhere(tmp_path, start):
    url = "mongodb://alice:s3cret%2Fword@127.0.0.1:9/sacred"
    processes = [
        start({"REPRO_MONGO_URL": url}, steps=1, cell="good", dataset=url),
        start({"REPRO_MONGO_URL": url}, steps=1, cell="failing", trouble="crash", dataset=f"log in to {url}"),
        start({"REPRO_MONGO_URL": url.replace(":9/", ":port/")}, steps=1, cell="wrong-url"),
    ]
    said = "".join("".join(process.communicate(timeout=120)) for process in processes)
    files = [file for file in (tmp_path / "runs").rglob("*") if file.is_file() and "_sources" not in file.parts]
    kept = "".join(file.read_text() for file in files)
    assert len(list((tmp_path / "runs").rglob("run.json"))) == 3
    for secret in ("s3cret%2Fword", "s3cret/word", "alice:"):
        assert secret not in kept and secret not in said
    assert "mongodb://***@127.0.0.1:9/sacred" in kept
    assert "tools/sync" in said


def test_redaction_knows_urls_and_the_servers_password(monkeypatch):
    assert redact("see https://user:word@host/x and git@host:y") == "see https://***@host/x and git@host:y"
    monkeypatch.setenv("REPRO_MONGO_URL", "mongodb://bob:hunter22@h/db")
    assert redact("hunter22 is the word") == "*** is the word"
    monkeypatch.setenv("REPRO_MONGO_URL", "mongodb://bob:a@h/db")
    assert redact("a cat at mongodb://bob:a@h/db") == "a cat at mongodb://***@h/db"
