"""Where the repository lies, and the Python in it."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def sources() -> list[Path]:
    """Every Python file of ours that users run, also before it is committed: by its ending, or by its first line."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "repro", "stages", "tools"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    files = [Path(name) for name in listed if (ROOT / name).is_file()]
    return [
        each for each in files if each.suffix == ".py" or (ROOT / each).read_bytes().startswith(b"#!/usr/bin/env py")
    ]
