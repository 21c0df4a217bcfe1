"""A small DVC project with all shapes that matter, and ways to run it serially and through `tools/cluster`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
WAITS = """echo $$ > written.pid; mv written.pid waiting.pid; while [ ! -e go ]; do sleep 0.05; done"""
STAGES = {
    "diamond": """
  top:
    cmd: echo threads=$OMP_NUM_THREADS $DVC_STAGE > top.txt
    deps: [seed.txt]
    outs: [top.txt]
  leaf:
    foreach: [a, b, c]
    do:
      cmd:
        - echo making ${item}
        - cat top.txt > leaf-${item}
        - echo ${item} >> leaf-${item}
      deps: [top.txt]
      outs: ["leaf-${item}"]
  bottom:
    cmd: cat leaf-* > bottom.txt
    deps: [leaf-a, leaf-b, leaf-c]
    outs: [bottom.txt: {cache: false}]
""",
    "failing": """
  first:
    cmd: echo 1 > first.txt
    deps: [seed.txt]
    outs: [first.txt]
  broken:
    cmd: [cat first.txt, echo the reason, test -e repaired, echo 2 > broken.txt]
    deps: [first.txt]
    outs: [broken.txt]
  after:
    cmd: cat broken.txt > after.txt
    deps: [broken.txt]
    outs: [after.txt]
  beside:
    cmd: cat first.txt > beside.txt
    deps: [first.txt]
    outs: [beside.txt]
""",
    "killing": """
  once:
    cmd: python kill.py once
    deps: [seed.txt]
    outs: [once]
  always:
    cmd: python kill.py always
    deps: [seed.txt]
    outs: [always]
""",
    "waiting": f"""
  quick:
    cmd: echo 1 > quick.txt
    deps: [seed.txt]
    outs: [quick.txt]
  slow:
    cmd: ['{WAITS}', echo 2 > slow.txt]
    deps: [quick.txt]
    outs: [slow.txt]
""",
}
# Kills the Ray worker that runs it, at its first attempt or at each; an attempt that goes on although its worker is
# gone would write "survived".
KILL = """
import contextlib, os, signal, sys, time
from pathlib import Path
journal = Path(f"journal-{sys.argv[1]}")
attempts = journal.read_text() if journal.exists() else ""
journal.write_text(attempts + "began ")
if "began" not in attempts or sys.argv[1] == "always":
    Path(sys.argv[1]).write_text("half")
    for worker in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # many come and go
            if worker.read_bytes().startswith(f"ray::{sys.argv[1]}".encode()):
                os.kill(int(worker.parent.name), signal.SIGKILL)
    time.sleep(20)
    journal.write_text("survived")
assert not Path(sys.argv[1]).exists()
Path(sys.argv[1]).write_text("whole")
"""


def make(folder: Path, stages: str) -> Path:
    """A DVC project without git."""
    folder.mkdir(parents=True)
    call(folder, "dvc", "init", "--quiet", "--no-scm")
    (folder / "dvc.yaml").write_text(f"stages:{STAGES[stages]}")
    (folder / "seed.txt").write_text("seed")
    (folder / "kill.py").write_text(KILL)
    return folder


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"} | more


def call(folder: Path, *command: str, code: int = 0) -> str:
    """Run to the end, check the exit code, give what was said."""
    done = subprocess.run(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == code, f"{' '.join(command)}: {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


def driver(*options: str) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name("drive.py")), *options]


def serial(folder: Path) -> Path:
    """A copy of the project as it is now, without anything made, brought up to date by DVC alone."""
    copy = folder.with_name(f"{folder.name}-serial")
    made = shutil.ignore_patterns("*.lock", "cache", "tmp", ".cluster", "*.pid", "journal-*")
    shutil.copytree(folder, copy, ignore=made)
    call(copy, "dvc", "repro", "--quiet")
    return copy
