"""Set-up shared by all tools: make `.venv` from the lock once, then run inside it. Standard library only.

An environment that this project itself is installed in (`uv sync`, `pip install -e .`) is its user's, and taken as it
is.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / "installed.sha256"
OLDEST_PYTHON = (3, 11)
INTERRUPTED = 130  # the exit code
VEGA = VENV / "vega.js"  # .dvc/plots.html draws with it, and asks the network where it is not there
BUNDLE = """
import sys
import vl_convert
vega = vl_convert.javascript_bundle(vl_version="5.21")  # DVC writes plots in Vega-Lite 5
with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write("(() => {\\n" + vega + "\\n})();\\n")  # its names stay its own
"""


def run_tool(main: "Callable[[], int | None]") -> None:
    """Run a tool in the environment, to its exit code; a wrong input ends it with a sentence, an interrupt without."""
    try:
        ensure_environment()
        from stages.tracking import bad_input_exits

        with bad_input_exits():
            sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def ensure_environment() -> None:
    """Continue inside `.venv`, installing it first where it is missing or older than the lock."""
    here = Path(sys.prefix)
    environment = here if _has_project(here) else VENV
    if environment == VENV:
        install()
    os.environ["PATH"] = f"{environment / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    if here != environment:
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    sys.path.insert(0, str(ROOT))
    from repro.files import fill_closed_streams

    fill_closed_streams()


def is_installed() -> bool:
    """Tell whether `.venv` holds exactly what the lock says, or is a user's own."""
    wanted = _fingerprint().encode()
    ours = STAMP.is_file() and STAMP.read_bytes() == wanted
    return PYTHON.exists() and (ours or _has_project(VENV))


def _has_project(environment: Path) -> bool:
    return any(environment.glob("lib/python*/site-packages/castle_repro-*.dist-info"))


def install() -> None:
    """Bring `.venv` to the lock. Safe to interrupt and to call twice at once: the stamp is written last."""
    try:
        _install_where_needed()
    except OSError as error:
        _fail(f"{error.filename or ROOT}: {error.strerror}; the set-up needs it, mend it and run it again")


def _install_where_needed() -> None:
    if is_installed() and (ROOT / ".dvc").is_dir():
        return
    if sys.version_info < OLDEST_PYTHON:
        _fail(f"Python {sys.version.split()[0]} found, 3.11 or newer expected; run this tool with a newer python3")
    sys.path.insert(0, str(ROOT))
    # An older Python than the one asked for above could not read it.
    from repro.files import fill_closed_streams, wait_to_lock

    fill_closed_streams()

    with (ROOT / ".setup.lock").open("w") as turn:
        wait_to_lock(turn)
        if not is_installed():
            _install_lock()
        _ensure_dvc()


def _install_lock() -> None:
    _say("set-up: once per change of requirements.lock, about 6 GB with CUDA's libraries, 2-5 minutes")
    started = time.monotonic()
    if not _works(PYTHON):
        shutil.rmtree(VENV, ignore_errors=True)
        run([_base_python(), "-m", "venv", str(VENV)], "make .venv (Debian: `apt install python3-venv`)")
    STAMP.unlink(missing_ok=True)
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--require-hashes"]
    run([*pip, "-r", str(LOCK)], "install requirements.lock (network, disk space; the message above tells)")
    if subprocess.run([str(PYTHON), "-c", BUNDLE, str(VEGA)], capture_output=True, check=False).returncode != 0:
        _say("set-up: no Vega could be taken from the lock's packages; `dvc plots show` will ask the network for it")
    STAMP.write_text(_fingerprint())
    _say(f"set-up: done in {time.monotonic() - started:.0f} s")


def _fingerprint() -> str:
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()


def _base_python() -> str:
    return getattr(sys, "_base_executable", "") or sys.executable


def _works(python: Path) -> bool:
    ask = [str(python), "-m", "pip", "--version"]
    return python.exists() and subprocess.run(ask, capture_output=True, check=False).returncode == 0


def _ensure_dvc() -> None:
    """Make the folder a DVC repository where it is none (a download without .dvc), with or without git."""
    dvc = str(VENV / "bin" / "dvc")
    has_git = (ROOT / ".git").exists()
    if not (ROOT / ".dvc").is_dir():
        run([dvc, "init", "--quiet", *([] if has_git else ["--no-scm"])], "make this folder a DVC repository")
        run([dvc, "config", "core.analytics", "false"], "configure DVC")
    elif not has_git:
        run([dvc, "config", "--local", "core.no_scm", "true"], "tell DVC that there is no git")


def run(command: list[str], purpose: str) -> None:
    """Run a command of the set-up, or end with a sentence."""
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        _fail(f"set-up could not {purpose}; run the same command again to continue")


def say(text: str, stream: TextIO) -> None:
    """Print a line; where nobody can read it, the exit code alone tells."""
    try:
        print(text, file=stream, flush=True)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # what is still buffered goes there when the process ends
        os.close(nowhere)


def _say(text: str) -> None:
    if sys.stderr:
        say(text, sys.stderr)


def _fail(text: str) -> None:
    _say(f"error: {text}")
    raise SystemExit(1)
