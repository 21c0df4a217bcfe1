"""What DVC wrote down of every output, compared with the files and with DVC's own copies of them, byte by byte.

DVC itself takes a file of the same size and time for unchanged, and never looks into its cache. A remedy that is named
here was tried on flipped bits with unchanged times: `dvc repro` alone skips the stage, `dvc repro -f -s` does not; what
is damaged in the cache is handed out again until it is removed.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

import yaml

from repro import paths


def dvc_problems(changed: set[str]) -> Iterator[str]:
    """Outputs that are not what their stage wrote (added to `changed`), damaged copies in the cache, stale inputs."""
    with tempfile.TemporaryDirectory() as nothing_known:  # DVC remembers hashes by time and size here
        asked = dvc("status", "--json", DVC_SITE_CACHE_DIR=nothing_known)
    if asked.returncode:
        yield f"`dvc status` fails ({reason(asked)}); repair dvc.yaml, dvc.lock or those in evaluate/"
        return
    outs: dict[str, tuple[str, str]] = {}
    others: dict[str, list[tuple[str, Any]]] = {}
    for stage, changes in json.loads(asked.stdout).items():
        for change in changes:
            if isinstance(change, str):  # "changed command", "always changed"
                others.setdefault(stage, []).append(("its command", change))
                continue
            outs |= {path: (stage, state) for path, state in change.get("changed outs", {}).items()}
            others.setdefault(stage, []).extend(change.get("changed deps", {}).items())
    changed.update(outs)
    copies, written = local_cache(), read_outputs()
    # What a copy brings back comes first: a stage that has to run may read it.
    for path in sorted(outs, key=lambda path: not has_copy(written.get(path), outs[path][1], copies)):
        (stage, state), output = outs[path], written.get(path)
        file = copies.changed_file(output) if output else path
        yield f"{file}: {state} since {stage} wrote it; run `{restoring(output, state, stage, copies)}`"
    stale = {stage for stage, _ in outs.values()} | others.keys()
    yield from cache_problems(copies, written, stale)
    within = outs.keys() | {str(parent) for out in outs for parent in Path(out).parents}
    for stage, inputs in others.items():
        named = [f"{path} ({words(state)})" for path, state in inputs if path not in within]
        if named:
            yield f"{stage}: changed since it ran: {', '.join(named)}; run `dvc repro {stage}`"


def dvc(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask DVC."""
    command = [sys.executable, "-m", "dvc", *arguments]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, encoding="utf-8", errors="replace", check=False
    )


def reason(failed: subprocess.CompletedProcess[str]) -> str:
    """What DVC says is wrong; hints and pointers to manuals follow it."""
    lines = [line.strip() for line in failed.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return next(iter([*errors, *lines]), "it gives no reason")


def words(state: Any) -> str:
    """DVC's word for a change; for parameters the names with theirs."""
    return ", ".join(f"{name} {how}" for name, how in state.items()) if isinstance(state, dict) else str(state)


@dataclass(frozen=True)
class Output:
    """A file or folder that DVC's lock names, and the stage that made it, as `dvc repro` takes it."""

    path: Path
    stage: str
    md5: str

    @property
    def group_and_name(self) -> tuple[str, str]:
        """The stage as dvc.yaml has it, and what it is run for: a dataset, a cell or nothing."""
        group, _, name = self.stage.rpartition(":")[2].partition("@")
        return group, name


def stage_groups() -> list[str]:
    """What the stages of the pipeline are called before the @."""
    pipelines = (paths.LOCK.with_suffix(".yaml"), paths.EVALUATIONS)
    return [name for file in pipelines for name in yaml.safe_load(file.read_bytes())["stages"]]


def read_outputs(*locks: Path) -> dict[str, Output]:
    """Every output of these locks by its path; without any, of the workspace's."""
    return {
        out["path"]: Output(Path(out["path"]), _address(lock, name), str(out.get("md5", "")))
        for lock in filter(Path.is_file, locks or (paths.LOCK, paths.EVALUATIONS_LOCK))
        for name, stage in ((yaml.safe_load(lock.read_bytes()) or {}).get("stages") or {}).items()
        for out in stage.get("outs", [])
    }


def _address(lock: Path, name: str) -> str:
    """A stage as `dvc repro` takes it."""
    return name if lock == paths.LOCK else f"{lock.with_suffix('.yaml')}:{name}"


class Cache:
    """DVC's copies: a file is named after the MD5 of its content, a folder after that of the list of its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "files" / "md5"

    def place(self, md5: str) -> Path:
        """Where the copy lies."""
        return self.folder / md5[:2] / md5[2:]

    @cached_property
    def damaged(self) -> set[str]:
        """The copies whose content is not what their name says."""
        names = {file.parent.name + file.name for file in self.folder.glob("??/*")}
        return {name for name in names if not is_content(self.place(name), name.removesuffix(".dir"))}

    def files(self, output: Output) -> dict[Path, str]:
        """The files of an output by path; of a folder whose list is lost, none."""
        return self.files_of(output) if not output.md5.endswith(".dir") or self.has(output.md5) else {}

    def files_of(self, output: Output) -> dict[Path, str]:
        """The same where the list is known to be sound."""
        if not output.md5.endswith(".dir"):
            return {output.path: output.md5}
        listed = json.loads(self.place(output.md5).read_text())
        return {output.path / entry["relpath"]: entry["md5"] for entry in listed}

    def has(self, md5: str) -> bool:
        """Tell whether a sound copy is here."""
        return self.place(md5).is_file() and md5 not in self.damaged

    def can_restore(self, output: Output) -> bool:
        """Tell whether all of an output is here and sound."""
        return all(map(self.has, [output.md5, *self.files(output).values()]))

    def changed_file(self, output: Output) -> Path:
        """The first file of an output that is not what was written; the output where none is known."""
        files = self.files(output).items()
        return next((file for file, md5 in files if not is_content(file, md5)), output.path)


def local_cache() -> Cache:
    """The one of this clone."""
    return Cache(Path(dvc("cache", "dir").stdout.strip()))


def is_content(file: Path, md5: str) -> bool:
    """Tell whether it is a file of that content; a folder or a link to nothing is none."""
    return file.is_file() and md5_of(file) == md5


def md5_of(file: Path) -> str:
    """DVC's hash of a file's content."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def has_copy(output: Output | None, state: str, copies: Cache) -> bool:
    """Tell whether a sound copy can take the place of an output that has changed."""
    return output is not None and state == "modified" and copies.can_restore(output)


def restoring(output: Output | None, state: str, stage: str, copies: Cache) -> str:
    """The command that brings an output back: from a sound copy, which takes no time, or by its stage."""
    if output and has_copy(output, state, copies):
        place = quote(str(output.path))
        return f"rm -r {place} && dvc checkout {place}"
    return f"dvc repro {stage}" if state == "deleted" else f"dvc repro -f -s {stage}"


def cache_problems(copies: Cache, written: dict[str, Output], stale: set[str]) -> Iterator[str]:
    """Copies that DVC would hand out though they are damaged."""
    stages = {md5: output.stage for output in written.values() for md5 in copies.files(output).values()}
    stages |= {output.md5: output.stage for output in written.values()}
    for md5 in sorted(copies.damaged):
        file, stage = copies.place(md5), stages.get(md5)
        then = f" && dvc {'repro -f -s' if stage in stale else 'commit -f'} {stage}" if stage else ""
        yield f"{file}: DVC's copy is no longer what its name says; run `rm -rf {quote(str(file))}{then}`"
