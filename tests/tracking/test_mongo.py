"""The copy of runs in Mongo: whole, idempotent, and never in a run's way."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import gridfs
import pytest
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.errors import OperationFailure

from repro.errors import BadInput
from stages.tracking import mirror, mongo
from stages.tracking.deleted import GIVEN, deleted_runs, forget_deleted
from stages.tracking.files import append_scalars
from stages.tracking.mongo import copied_states, copy_run
from tests.paths import ROOT
from tests.tracking import toy
from tests.tracking.conftest import only_run, read, services
from tests.waiting import wait_for


@pytest.fixture
def database(server):
    """An empty database of the embedded server."""
    with MongoClient(server) as client:
        database = client[f"t{time.monotonic_ns()}"]
        yield database


def dump(database):
    """All that is stored, in one comparable value."""
    names = ("runs", "metrics", "fs.files")
    return {name: sorted((json.dumps(row, default=str) for row in database[name].find()), key=str) for name in names}


def sync(url, runs, *options):
    """Run tools/sync as a user does."""
    command = [sys.executable, "tools/sync", "--runs", str(runs), *options]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "REPRO_MONGO_URL": url}, capture_output=True, text=True, check=False
    )


def test_a_copy_has_what_omniboard_reads(tmp_path, database):
    toy.record_toy(tmp_path, seed=3)
    folder = only_run(tmp_path)
    copy_run(folder, database)
    run = database.runs.find_one()
    assert run["_id"] == 1 and run["experiment"]["name"] == "toy" and run["status"] == "COMPLETED"
    assert run["config"]["method"] == "castle" and run["result"] == {"hm": 63.0, "acc": 73.0, "ausuc": 0.5}
    assert run["start_time"].isoformat()[:19] == read(folder)["start_time"][:19]
    assert run["heartbeat"] >= run["start_time"] and run["captured_out"].endswith("done with mini-castle-1shot\n")
    metrics = {metric["name"]: metric for metric in database.metrics.find({"run_id": 1})}
    assert {link["name"]: link["id"] for link in run["info"]["metrics"]} == {
        name: str(metric["_id"]) for name, metric in metrics.items()
    }
    assert metrics["loss"]["steps"] == [0, 1, 2, 3, 4] and metrics["loss"]["values"][0] == 13.0
    assert len(metrics["loss"]["timestamps"]) == 5
    files = gridfs.GridFS(database)
    (artifact,) = run["artifacts"]
    assert files.get(artifact["file_id"]).read() == (folder / "artifacts" / "metrics.json").read_bytes()
    sources = dict(run["experiment"]["sources"])
    assert files.get(sources["stages/tracking/runs.py"]).read() == (ROOT / "stages/tracking/runs.py").read_bytes()


def test_copying_again_changes_nothing_and_other_runs_get_other_numbers(tmp_path, database):
    for seed in range(3):
        toy.record_toy(tmp_path, seed=seed)
    folders = sorted(tmp_path.glob("2*"))
    for folder in folders:
        copy_run(folder, database)
    before = dump(database)
    assert sorted(run["_id"] for run in database.runs.find()) == [1, 2, 3]
    for folder in reversed(folders):
        copy_run(folder, database)
    assert dump(database) == before


def test_copying_writes_nothing_into_the_run(tmp_path, database):
    toy.record_toy(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    copy_run(only_run(tmp_path), database)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_tags_given_in_omniboard_survive_the_next_copy(tmp_path, database):
    toy.record_toy(tmp_path)
    copy_run(only_run(tmp_path), database)
    database.runs.update_one({"_id": 1}, {"$set": {"omniboard": {"tags": ["good"]}}})
    append_scalars(only_run(tmp_path), [("loss", 99, 0.5, "2026-01-01T00:00:00")])
    copy_run(only_run(tmp_path), database)
    assert database.runs.find_one()["omniboard"] == {"tags": ["good"]}
    assert database.metrics.find_one({"name": "loss"})["steps"][-1] == 99


def test_a_run_deleted_on_the_server_is_not_copied_again_and_its_number_is_not_given_again(tmp_path, database):
    for seed in range(2):
        toy.record_toy(tmp_path, seed=seed)
    kept, deleted = sorted(tmp_path.glob("2*"))
    known = {}
    assert services.sync(tmp_path, database, known, lambda _: None) == []
    database.runs.delete_one({"_id": 2})
    append_scalars(deleted, [("loss", 99, 0.5, "2026-01-01T00:00:00")])  # it still runs
    said = []
    for memory in (known, copied_states(database)):  # in this process, and after the next start
        assert services.sync(tmp_path, database, memory, said.append) == []
    copy_run(deleted, database)
    assert said == [] and copied_states(database).keys() == {kept.name} and deleted_runs(database) == {deleted.name}
    toy.record_toy(tmp_path, seed=2)
    services.sync(tmp_path, database, known, said.append)
    assert sorted(run["_id"] for run in database.runs.find()) == [1, 3] and len(said) == 1
    forget_deleted(database)
    services.sync(tmp_path, database, copied_states(database), said.append)
    assert sorted(run["_id"] for run in database.runs.find()) == [1, 3, 4]


def test_a_run_of_an_older_copy_that_is_deleted_stays_away(tmp_path, database):
    toy.record_toy(tmp_path)
    copy_run(only_run(tmp_path), database)
    database[GIVEN].drop()  # as a copy from before the list was kept left it
    known = copied_states(database)
    database.runs.delete_one({"_id": 1})
    assert services.sync(tmp_path, database, {}, lambda _: None) == [] and known.keys() == {only_run(tmp_path).name}
    assert database.runs.count_documents({}) == 0


def test_documents_are_changed_and_removed_as_drivers_ask(database):
    things = database["some.things"]
    things.insert_many([{"_id": number, "n": number, "at": {"x": 1}} for number in range(3)])
    changed = things.find_one_and_update(
        {"n": {"$gt": 0}}, {"$set": {"at.y": 2}}, sort=[("n", -1)], return_document=True
    )
    assert changed == {"_id": 2, "n": 2, "at": {"x": 1, "y": 2}} == things.find_one({"_id": 2})
    assert things.find_one_and_update({"_id": 1}, {"$unset": {"at": ""}}, projection={"at": 1}) == {
        "_id": 1,
        "at": {"x": 1},
    }
    assert things.find_one_and_replace({"_id": 1}, {"n": 7})["n"] == 1 and things.find_one({"_id": 1}) == {
        "_id": 1,
        "n": 7,
    }
    assert things.find_one_and_delete({"n": 7}) == {"_id": 1, "n": 7} and things.count_documents({}) == 2
    assert things.find_one_and_delete({"n": 7}) is None
    assert things.find_one_and_update({"n": 7}, {"$set": {"n": 8}}) is None
    for refused in ({"$inc": {"n": 1}}, {"$push": {"at": 1}}):
        with pytest.raises(OperationFailure, match="not supported here: update operator"):
            things.find_one_and_update({"_id": 0}, refused)
    with pytest.raises(OperationFailure, match="inserts"):
        things.find_one_and_update({"_id": 9}, {"$set": {"n": 9}}, upsert=True)


def test_long_series_output_and_large_results_stay_far_below_16_mb(tmp_path, database, monkeypatch, faults):
    faults.tried()
    toy.record_toy(tmp_path)
    folder = only_run(tmp_path)
    times = "2026-01-01T00:00:00"
    append_scalars(folder, [("long", step, float(step), times) for step in range(50_001)])
    (folder / "cout.txt").write_text("first\n" + "x" * 2_000_000 + "\nlast")
    monkeypatch.setattr(mongo, "LARGEST_DOCUMENT", 700_000)
    entry = read(folder)
    (folder / "run.json").write_text(json.dumps({**entry, "result": {"blob": "y" * 900_000}}))
    copy_run(folder, database)
    series = database.metrics.find_one({"name": "long"})
    assert len(series["steps"]) <= 20_000 and series["steps"][-1] == 50_000 and series["values"][-1] == 50_000.0
    run = database.runs.find_one()
    assert run["captured_out"].startswith("first\n") and run["captured_out"].endswith("\nlast")
    assert "1500011 characters left out" in run["captured_out"]
    assert run["result"] == f"too large for a document: see {folder}"
    faults.survived()


def test_what_is_no_number_becomes_null_and_odd_keys_are_replaced(tmp_path, database):
    toy.record_toy(tmp_path, method={"lr.max": 1, "$x": float("inf")})
    append_scalars(only_run(tmp_path), [("loss", 7, float("nan"), "2026-01-01T00:00:00")])
    copy_run(only_run(tmp_path), database)
    assert database.runs.find_one()["config"]["method"] == {"lr,max": 1, "@x": None}
    assert database.metrics.find_one({"name": "loss"})["values"][-1] is None


def test_an_upload_that_was_cut_off_is_done_again(tmp_path, database, faults):
    faults.tried()
    toy.record_toy(tmp_path)
    folder = only_run(tmp_path)
    content = (folder / "artifacts" / "metrics.json").read_bytes()
    key = mongo._object_id("artifact", folder.name, "metrics.json", content)
    files = gridfs.GridFS(database)
    files.new_file(_id=key, filename="cut off", chunk_size=8).write(content[:20])  # two pieces, never closed
    copy_run(folder, database)
    assert files.get(key).read() == content
    faults.survived()


@pytest.mark.parametrize("damage", ["run.json", "config.json", "cout.txt", "artifacts", "not JSON", "not a record"])
def test_a_damaged_folder_is_named(tmp_path, database, damage):
    toy.record_toy(tmp_path)
    folder = only_run(tmp_path)
    if damage.startswith("not"):
        (folder / "run.json").write_text({"not JSON": "{", "not a record": "[1]"}[damage])
    elif damage == "artifacts":
        shutil.rmtree(folder / "artifacts")
    else:
        (folder / damage).unlink()
    with pytest.raises(BadInput, match=folder.name):
        copy_run(folder, database)


def test_sync_copies_the_rest_when_one_folder_is_damaged_and_nothing_when_all_is_there(tmp_path, server):
    url = services.with_database(server.rpartition("/")[0]).replace("/sacred", f"/s{time.monotonic_ns()}")
    for seed in range(3):
        toy.record_toy(tmp_path, seed=seed)
    damaged = sorted(tmp_path.glob("2*"))[1]
    entry = (damaged / "run.json").read_text()
    (damaged / "run.json").write_text("{")
    done = sync(url, tmp_path)
    assert done.returncode == 1 and "2 runs in 127.0.0.1" in done.stdout
    (said,) = done.stderr.splitlines()
    assert said.startswith("error: ") and damaged.name in said
    (damaged / "run.json").write_text(entry)
    done = sync(url, tmp_path)
    assert done.returncode == 0 and f"1/1 {damaged.name}" in done.stdout
    done = sync(url, tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines() == [f"3 runs in {url[10:].replace('/', ', database ')}"]


# A server that fails


def test_a_server_that_is_down_costs_a_run_a_few_seconds_and_nothing_else(tmp_path, monkeypatch, caplog, faults):
    faults.tried()
    monkeypatch.setenv("REPRO_MONGO_URL", f"mongodb://127.0.0.1:{services.free_port()}")
    started = time.monotonic()
    assert toy.record_toy(tmp_path)
    assert time.monotonic() - started < 8
    assert read(only_run(tmp_path))["status"] == "COMPLETED"
    assert "`tools/sync` copies it later" in caplog.text
    faults.survived()


def test_a_server_that_accepts_and_never_answers_costs_a_bounded_time(tmp_path, monkeypatch, caplog, faults):
    faults.tried()
    monkeypatch.setattr(mirror, "LAST_COPY_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("REPRO_MONGO_URL", f"mongodb://127.0.0.1:{silent.getsockname()[1]}")
        started = time.monotonic()
        assert toy.record_toy(tmp_path)
        assert time.monotonic() - started < 5
    assert "`tools/sync` copies it later" in caplog.text
    faults.survived()


def test_a_server_that_is_full_gets_the_run_later(tmp_path, server, monkeypatch, caplog, faults):
    faults.tried()
    url = server.replace("/sacred", f"/full{time.monotonic_ns()}")

    def refuse(*_, **__):
        raise OperationFailure("No space left on device", code=14031)

    with monkeypatch.context() as patch:
        patch.setenv("REPRO_MONGO_URL", url)
        patch.setattr(Collection, "update_one", refuse)
        patch.setattr(Collection, "replace_one", refuse)
        assert toy.record_toy(tmp_path)
    assert read(only_run(tmp_path))["status"] == "COMPLETED"
    assert "`tools/sync` copies it later" in caplog.text
    assert sync(url, tmp_path).returncode == 0
    with MongoClient(url) as client:
        assert client.get_default_database().runs.find_one()["status"] == "COMPLETED"
    faults.survived()


def test_a_run_shows_while_it_runs(tmp_path, server, start):
    url = server.replace("/sacred", f"/live{time.monotonic_ns()}")
    start({"REPRO_MONGO_URL": url}, steps=2000, pause=0.05, beat=0.3)
    with MongoClient(url) as client:
        runs = client.get_default_database().runs
        metrics = client.get_default_database().metrics
        wait_for(lambda: runs.find_one({"status": "RUNNING"}))
        first = len(wait_for(lambda: metrics.find_one({"name": "loss"}))["steps"])
        wait_for(lambda: len(metrics.find_one({"name": "loss"})["steps"]) > first)


def test_a_server_killed_in_the_middle_of_a_run_is_made_whole_by_sync(tmp_path, start, faults):
    faults.tried()
    runs = tmp_path / "runs"
    with services.embedded_server(tmp_path / "one") as (service, url):
        process = start({"REPRO_MONGO_URL": url}, steps=120, pause=0.05, beat=0.3)
        with MongoClient(url) as client:
            wait_for(lambda: client.get_default_database().metrics.find_one({"name": "loss"}))
        os.killpg(service._process.pid, 9)
        said = process.communicate(timeout=120)
    assert process.returncode == 0 and "`tools/sync` copies it later" in said[1]
    assert read(only_run(runs))["status"] == "COMPLETED"
    with services.embedded_server(tmp_path / "one") as (_, url):
        with MongoClient(url) as client:
            assert client.get_default_database().runs.find_one()["status"] == "RUNNING"
        done = sync(url, runs)
        assert done.returncode == 0, done.stderr
        with MongoClient(url) as client:
            database = client.get_default_database()
            run = database.runs.find_one()
            assert run["_id"] == 1 and run["status"] == "COMPLETED" and run["result"]["hm"] == 60.0
            assert database.runs.count_documents({}) == 1
            assert database.metrics.find_one({"name": "loss"})["steps"] == list(range(120))
            assert copied_states(database).keys() == {only_run(runs).name}
    faults.survived()


def test_a_server_that_comes_back_gets_the_run_by_itself(tmp_path, start, faults):
    faults.tried()
    port = services.free_port()
    process = start({"REPRO_MONGO_URL": f"mongodb://127.0.0.1:{port}"}, steps=200, pause=0.05, beat=0.3)
    wait_for(lambda: next((tmp_path / "runs").glob("2*/metrics.jsonl"), None))
    with services.embedded_server(tmp_path / "late", port) as (_, url), MongoClient(url) as client:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0 and "tools/sync" not in said
        run = client.sacred.runs.find_one()
        assert run["status"] == "COMPLETED"
        assert len(client.sacred.metrics.find_one({"name": "loss"})["steps"]) == 200
    faults.survived()


def test_two_copies_at_once_make_one_run(tmp_path, database, faults):
    faults.tried()
    toy.record_toy(tmp_path)
    folder = only_run(tmp_path)
    copies = [threading.Thread(target=copy_run, args=(folder, database)) for _ in range(4)]
    for copy in copies:
        copy.start()
    for copy in copies:
        copy.join()
    assert database.runs.count_documents({}) == 1 and database.metrics.count_documents({}) == 2
    faults.survived()
