"""tools/omniboard and tools/sync as a user runs them: what they say when something is missing, what they leave."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from stages.tracking.mongo import hosts
from tests.paths import ROOT
from tests.tracking import toy
from tests.tracking.conftest import services
from tests.waiting import wait_for


def tool(name, *options, **environment):
    """Run a tool to its end."""
    command = [sys.executable, f"tools/{name}", *map(str, options)]
    env = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=300)


def one_sentence(done):
    """The error that a tool ended with."""
    assert done.returncode == 2, done.stderr
    (said,) = done.stderr.splitlines()
    assert said.startswith("error: ")
    return said


def test_the_examples_of_sync_run(tmp_path, server):
    runs = tmp_path / "runs"
    toy.record_toy(runs)
    for line in re.findall(r"^  (?=\w.*tools/sync|tools/sync)(.*)", tool("sync", "--help").stdout, re.MULTILINE):
        command = re.sub(r"mongodb://\S+", server, line).partition("#")[0].replace("mlruns", str(tmp_path / "mlruns"))
        environment = {**os.environ, "REPRO_MONGO_URL": server, "DVC_ROOT": str(tmp_path)}
        words = command.replace("--runs runs", f"--runs {runs}")
        done = subprocess.run(words, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "1 runs in" in done.stdout, (line, done.stderr)


def test_forged_names_of_run_folders_reach_neither_the_terminal_nor_the_server(tmp_path, server):
    toy.record_toy(tmp_path)
    for name in ("20260101-000000-000-toy-a\nb-abcdef", "\x1b[2Jx", "..x\udcff"):
        shutil.copytree(next(tmp_path.glob("2*-toy-mini*")), tmp_path / name)
    url = server.replace("/sacred", "/forged")
    done = tool("sync", "--runs", tmp_path, REPRO_MONGO_URL=url)
    assert done.returncode == 1 and f"1 runs in {hosts(url)}, database forged\n" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 2 and all("not named as a run" in line for line in done.stderr.splitlines())


def test_sync_without_a_server_says_what_to_do(tmp_path):
    if services.running_embedded(services.home()):
        pytest.skip("a dashboard of this repository is running")
    assert "set it, or start tools/omniboard" in one_sentence(tool("sync", "--runs", tmp_path))


def test_sync_with_a_server_that_is_down_says_so_without_the_password(tmp_path):
    url = f"mongodb://bob:hunter22@127.0.0.1:{services.free_port()}"
    said = one_sentence(tool("sync", "--runs", tmp_path, REPRO_MONGO_URL=url))
    assert "Mongo at 127.0.0.1:" in said and "does not answer" in said and "hunter22" not in said


def test_without_node_it_says_how_to_get_it(tmp_path):
    git = Path(shutil.which("git") or "git").parent  # the set-up looks for a repository
    path = tmp_path / "bin"
    path.mkdir()
    (path / "git").symlink_to(git / "git")
    said = one_sentence(tool("omniboard", "--home", tmp_path, "--port", services.free_port(), PATH=str(path)))
    assert "no `node` found; install Node.js" in said


def test_a_url_without_a_database_gets_the_one_of_the_runs():
    assert services.with_database("mongodb://h:1") == "mongodb://h:1/sacred"
    assert services.with_database("mongodb://h/lab?x=y") == "mongodb://h/lab?x=y"
    assert services.with_database("mongodb://u:p@h/") == "mongodb://u:p@h/sacred?authSource=admin"
    assert services.with_database("mongodb://u:p@h/?authSource=x") == "mongodb://u:p@h/sacred?authSource=x"


def test_the_pinned_packages_name_no_registry():
    lock = json.loads((ROOT / "tools/tracking/package-lock.json").read_text())
    packages = [package for name, package in lock["packages"].items() if name]
    assert lock["packages"]["node_modules/omniboard"]["version"] == "2.16.1"
    assert all("resolved" not in package for package in packages)
    assert all("integrity" in package or package.get("inBundle") for package in packages)


def test_containers_listen_on_this_machine_only_and_are_pinned():
    compose = yaml.safe_load((ROOT / "tools/compose.yaml").read_text())
    for service in compose["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert service["image"].partition(":")[2][0].isdigit()


def test_the_embedded_server_is_for_this_machine_ends_with_its_owner_and_refuses_a_second(tmp_path):
    port = services.free_port()
    command = [sys.executable, "tools/tracking/server.py", str(tmp_path), str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as process:
        wait_for(lambda: services.answers(port))
        assert listening(port) == {"127.0.0.1"}
        second = subprocess.run(
            [*command[:-1], str(services.free_port())], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert second.returncode == 1 and "another server uses" in second.stderr
        process.stdin.close()
        assert process.wait(10) == 0


def test_other_versions_of_the_servers_packages_are_refused(monkeypatch):
    from tools.tracking import server

    monkeypatch.setattr(server, "version", lambda _: "0.0")
    with pytest.raises(SystemExit, match="nx-27017 0.0 is installed, 0.8.1 expected; run tools/setup"):
        server.check_versions()


def listening(port):
    """The addresses on which somebody listens on the port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    local = [row[1].split(":") for row in rows if row[3] == "0A"]
    six = [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    assert not [row for row in six if row[3] == "0A" and int(row[1].split(":")[1], 16) == port]
    return {socket.inet_ntoa(bytes.fromhex(address)[::-1]) for address, number in local if int(number, 16) == port}


# The dashboard itself


def command(home, runs, port):
    """How a user starts the dashboard."""
    return [sys.executable, "tools/omniboard", "--home", str(home), "--runs", str(runs), "--port", str(port)]


def test_once_starts_checks_and_leaves_nothing_running(tmp_path, installed):
    toy.record_toy(tmp_path)
    port = services.free_port()
    done = tool("omniboard", "--once", "--home", installed, "--runs", tmp_path, "--port", port)
    assert done.returncode == 0, done.stderr
    assert f"http://127.0.0.1:{port}/" in done.stdout
    assert not services.answers(port) and services.running_embedded(installed) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_its_children_end_too(tmp_path, installed, number):
    port = services.free_port()
    started = command(installed, tmp_path, port)
    with subprocess.Popen(started, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline()
        assert f"http://127.0.0.1:{port}/" in said
        assert listening(port) == {"127.0.0.1"}
        process.send_signal(number)
        process.wait(30)
        assert process.stderr.read() == ""
    wait_for(lambda: not services.answers(port) and services.running_embedded(installed) is None)
    assert process.returncode == (-9 if number == signal.SIGKILL else 0)


def test_runs_that_are_recorded_later_appear(tmp_path, installed):
    port = services.free_port()

    def count():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/sacred/api/v1/Runs/count", timeout=10) as reply:
            return json.load(reply)["count"]

    started = command(installed, tmp_path, port)
    with subprocess.Popen(started, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        before = count()
        toy.record_toy(tmp_path)
        assert process.stdout.readline() == f"1/1 {next(tmp_path.glob('2*')).name}\n"
        assert count() == before + 1
        process.terminate()
