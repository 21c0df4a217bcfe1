"""Disks that are full or may not be written to: one sentence, exit code 2, and no torn file under any name.

The disks are mounted in a mount namespace of the test's own, so nothing of them is left on the machine.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from repro.errors import BadInput
from repro.files import whole_file, whole_folder
from tests.counting import Count
from tests.faults.scene import Scene
from tests.tracking import toy

NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
FULL = "mount -t tmpfs -o size={size} none {place}"
READ_ONLY = "mount --bind {place} {place} && mount -o remount,bind,ro {place}"
# A fork server of our own, which lives in our namespace.
SERVED = """import os, subprocess, sys
from stages.launching.forkserver import fork_server
with fork_server() as environment:
    sys.exit(subprocess.call(["sh", "-c", sys.argv[1]], env=os.environ | environment))"""
# What the stage writes to, and how that is spoilt: smaller than one of its files, or closed. Its output goes first,
# since what is whole is not made again; so those that read it come before it.
DISKS = {
    "paper": ("paper", READ_ONLY.format(place="paper")),
    "evaluate@mini-castle-1shot": ("results", FULL.format(size="4k", place="results")),
    "evaluate_untrained@mini-mc_knn-1shot": ("runs", READ_ONLY.format(place="runs")),
    "evaluate@mini-protonet-1shot": ("results", READ_ONLY.format(place="results")),
    "train@mini-castle-1shot": ("checkpoints", FULL.format(size="16k", place="checkpoints")),
    "pretrain@mini": ("models", FULL.format(size="16k", place="models")),
    "episodes@mini": ("runs", FULL.format(size="4k", place="runs")),
    "splits@mini": ("data", FULL.format(size="64k", place="data")),
}


@pytest.mark.timeout(1200)
def test_a_disk_that_is_full_or_closed_is_one_sentence(scene: Scene, faults: Count) -> None:
    probe = f"{DISKS['splits@mini'][1]} && {READ_ONLY.format(place='runs')}"
    probed = subprocess.run([*NAMESPACE, "sh", "-c", probe], cwd=scene.folder, capture_output=True, check=False)
    if probed.returncode:
        pytest.skip("NO MOUNT NAMESPACES HERE: full and read-only disks are not tested; run as root")
    (scene.folder / "checkpoints").mkdir(exist_ok=True)
    faults.tried(len(DISKS))
    made = {stage: " ".join(out["path"] for out in scene.lock[stage]["outs"]) for stage in DISKS if stage != "paper"}
    script = "\n".join(
        f"rm -rf {made.get(stage, '')}\n"
        f"({spoil} && '{sys.executable}' -m stages {' '.join(scene.command(stage))} 2> said.{number} >&2\n"
        f"echo $? > code.{number}\nfind {place} -name '.*' > left.{number}); umount {place}"
        for number, (stage, (place, spoil)) in enumerate(DISKS.items())
    )
    environment = {name: value for name, value in os.environ.items() if name != "REPRO_MONGO_URL"}
    environment |= {"OMP_NUM_THREADS": "1"}
    command = [*NAMESPACE, sys.executable, "-c", SERVED, script]
    done = subprocess.run(command, cwd=scene.folder, env=environment, check=False)
    assert done.returncode == 0
    for number, (stage, (place, _)) in enumerate(DISKS.items()):
        said, code, left = ((scene.folder / f"{name}.{number}").read_text() for name in ("said", "code", "left"))
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        assert (len(errors), code) == (1, "2\n"), f"{stage}: {said}"
        assert "free some space" in errors[0] or "you may write to" in errors[0]
        assert place in errors[0] and "Traceback" not in said
        assert ".partial" not in left and ".old" not in left
        faults.survived()


@pytest.mark.parametrize("writing", [whole_file, whole_folder])
def test_what_was_there_stays_when_the_disk_is_full(writing, tmp_path: Path, faults: Count) -> None:
    faults.tried()
    with writing(tmp_path / "kept") as partial:
        (partial if writing is whole_file else partial / "inner").write_text("before")
    with pytest.raises(BadInput, match="kept: no space left for it; free some space"), writing(tmp_path / "kept"):
        raise OSError(28, "No space left on device")
    kept = tmp_path / "kept"
    assert (kept if writing is whole_file else kept / "inner").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    faults.survived()


def test_a_file_in_the_place_of_runs_is_named(tmp_path: Path, capsys, faults: Count) -> None:
    faults.tried()
    (tmp_path / "runs").write_text("")
    with pytest.raises(SystemExit) as ended:
        toy.record_toy(tmp_path / "runs" / "inner")
    assert ended.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("error: ") and said.endswith(
        "or a folder above it is a file, expected a folder; move it away"
    )
    faults.survived()
