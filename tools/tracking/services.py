"""What the tracking tools start, find and fill: the embedded server, Omniboard, the copy of `runs/` in Mongo."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pymongo.database import Database
from pymongo.errors import PyMongoError

from repro.errors import BadInput
from repro.files import try_to_lock, wait_to_lock
from stages.tracking import run_folders
from stages.tracking.deleted import deleted_runs
from stages.tracking.mongo import DATABASE, copied_states, copy_run, hosts, mongo_database, state
from stages.tracking.names import PLAIN, printable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
START_SECONDS = 60.0
STOP_SECONDS = 5.0
FIRST_SETTINGS = {"auto_refresh_interval": 10, "row_height": 45}


def say(text: str) -> None:
    """Tell the user at once, in a line that a terminal only shows."""
    print(printable(text), flush=True)


def complain(problem: str) -> None:
    """The same for what went wrong."""
    print(f"error: {printable(problem)}", file=sys.stderr, flush=True)


# Processes


class Service:
    """A child process with a log file; it ends when told to, or when this process is gone."""

    def __init__(self, name: str, command: list[str], log: Path, **environment: str) -> None:
        self.name = name
        self.log = log
        log.unlink(missing_ok=True)
        with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as output:
            # A session of its own: an interrupt at the terminal reaches this process alone, which then stops the child.
            # Standard input is a pipe that closes with this process, whatever ends it: the child leaves then.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise BadInput where the child has ended; its words stay in the log, they may hold the server's password."""
        if (code := self._process.poll()) is not None:
            raise BadInput(f"{self.name} has ended with exit code {code}; its log is {self.log}")

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Wait for the child to be ready; raises BadInput where it ends or takes too long."""
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise BadInput(f"{self.name} is not ready after {START_SECONDS:.0f} s; its log is {self.log}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End the child and all that it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(self._process.pid, number)
                self._process.wait(STOP_SECONDS)
        if self._process.stdin:
            self._process.stdin.close()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def require_free(port: int, option: str) -> None:
    """Raise BadInput where somebody listens on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise BadInput(f"port {port} cannot be used ({error}); choose another one with {option}") from error


def answers(port: int) -> bool:
    """Tell whether somebody listens on the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


# The embedded server


def running_embedded(home: Path) -> str | None:
    """The URL of the embedded server under `home`, where one runs."""
    folder = home / "mongo"
    try:
        with (folder / "lock").open("r+") as lock:
            running = not try_to_lock(lock)
    except FileNotFoundError:
        return None
    return f"mongodb://127.0.0.1:{(folder / 'port').read_text()}/{DATABASE}" if running else None


@contextlib.contextmanager
def embedded_server(home: Path, port: int | None = None) -> Iterator[tuple[Service, str]]:
    """Run the embedded server with its data under `home`; give it and its URL."""
    if find_spec("nx_27017") is None:
        raise BadInput("nx-27017 is not installed; add the extra `server`, run tools/setup, or set REPRO_MONGO_URL")
    home.mkdir(parents=True, exist_ok=True)
    if port is not None:
        require_free(port, "--mongo-port")
    port = port or free_port()
    command = [sys.executable, str(HERE / "server.py"), str(home / "mongo"), str(port)]
    service = Service("the embedded Mongo server", command, home / "mongo.log")
    try:
        service.wait_until(lambda: answers(port))
        yield service, f"mongodb://127.0.0.1:{port}/{DATABASE}"
    finally:
        service.stop()


# Omniboard


def install_omniboard(home: Path) -> Path:
    """Install the pinned Omniboard with npm unless it is there; give its folder. Safe to interrupt: run it again."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise BadInput(f"no `{program}` found; install Node.js 18 or newer (Debian: `apt install nodejs npm`)")
    folder = home / "omniboard"
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    stamp = folder / "installed.sha256"
    with (home / "install.lock").open("w") as turn:
        wait_to_lock(turn)
        if stamp.is_file() and stamp.read_text() == digest:
            return folder
        say(f"installing Omniboard from npm into {folder}: once, about 2 minutes and 530 MB")
        stamp.unlink(missing_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(HERE / name, folder / name)
        command = ["npm", "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"]
        if subprocess.run(command, cwd=folder, check=False).returncode != 0:
            raise BadInput("npm could not install Omniboard (its message is above); run the same command again")
        stamp.write_text(digest)
    return folder


@contextlib.contextmanager
def dashboard(home: Path, folder: Path, url: str, port: int, address: str | None = None) -> Iterator[Service]:
    """Run Omniboard on 127.0.0.1 with the database at `url`; the URL goes by environment, not by command line.

    Browsers reach it under `address` too, where that is given.
    """
    command = ["node", str(HERE / "omniboard.js"), str(folder)]
    environment = {"MONGO_URI": with_database(url), "PORT": str(port), "ADDRESS": address or ""}
    service = Service("Omniboard", command, home / "omniboard.log", **environment)
    try:
        service.wait_until(lambda: _lists_runs(port))
        yield service
    finally:
        service.stop()


def _lists_runs(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/sacred/api/v1/Runs/count", timeout=5) as reply:
            return "count" in json.load(reply)
    except (OSError, ValueError):
        return False


def with_database(url: str) -> str:
    """The URL with a database's name: Omniboard would take `test` for one without, where the runs are in `sacred`."""
    parts = urlsplit(url)
    if parts.path.strip("/"):
        return url
    query = parts.query
    if "@" in parts.netloc and "authSource" not in query:
        query = "&".join(filter(None, (query, "authSource=admin")))  # as for a URL without a name
    return urlunsplit(parts._replace(path=f"/{DATABASE}", query=query))


def arrange_columns(database: Database[dict[str, Any]]) -> None:
    """Give Omniboard useful columns and settings, unless somebody has chosen some already."""
    columns = json.loads((HERE / "columns.json").read_text())
    wanted = {
        "omniboard.custom.columns": [{"name": column["name"], "config_path": column["path"]} for column in columns],
        "omniboard.settings": [{"name": name, "value": value} for name, value in FIRST_SETTINGS.items()],
    }
    for collection, documents in wanted.items():
        if database[collection].find_one() is None:
            database[collection].insert_many(documents)


# Runs


def sync(
    runs: Path, database: Database[dict[str, Any]], known: dict[str, str], show: Callable[[str], None] = say
) -> list[str]:
    """Copy the runs whose state differs from `known`, and update that; give a sentence for each that is no record."""
    problems = []
    due = {folder: now for folder in run_folders(runs) if known.get(folder.name) != (now := state(folder))}
    known.update({folder.name: now for folder, now in due.items()})
    deleted = deleted_runs(database) if due else set()
    missing = [folder for folder in due if folder.name not in deleted]
    for number, folder in enumerate(missing, start=1):
        try:
            if not PLAIN.fullmatch(folder.name):
                raise BadInput(f"{folder} is not named as a run is; remove it, or rename it to letters and . _ + -")
            copy_run(folder, database)
            show(f"{number}/{len(missing)} {folder.name}")
        except BadInput as error:
            problems.append(str(error))
    return problems


@contextlib.contextmanager
def runs_on_server(url: str) -> Iterator[tuple[Database[dict[str, Any]], dict[str, str]]]:
    """Connect, and read which runs are there in which state; raises BadInput where no Mongo answers."""
    with mongo_database(url) as database:
        try:
            yield database, copied_states(database)
        except PyMongoError as error:  # named by its kind: its text may hold the URL
            name = f"Mongo at {place(url, database)}"
            raise BadInput(f"{name} does not answer ({type(error).__name__}); start it and try again") from None


def place(url: str, database: Database[dict[str, Any]]) -> str:
    """Where the runs are, without user and password."""
    return f"{hosts(url)}, database {database.name}"


def home() -> Path:
    """Where the tools keep what they install and store."""
    return ROOT / ".tracking"
