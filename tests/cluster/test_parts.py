"""What a worker gives its stage, what a stage may ask for, and where a new entry goes in dvc.lock."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from repro.errors import BadInput
from repro.options import checked
from stages.settings.machine import Machine, Resources
from tools.scheduling import clusters, leash
from tools.scheduling.lock_order import LockOrder
from tools.scheduling.ray_engine import follow
from tools.scheduling.schedule import Schedule
from tools.scheduling.table import tail


@pytest.mark.parametrize("granted", [True, False])
def test_a_stage_gets_the_callers_environment_and_the_gpus_that_it_was_granted(
    granted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"TMPDIR": "/node", "CUDA_VISIBLE_DEVICES": "3", "OMP_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    show = "echo $TMPDIR $CUDA_VISIBLE_DEVICES ${OMP_NUM_THREADS:-none} $MINE"
    log = tmp_path / "log"
    command = [sys.executable, leash.__file__, str(log), json.dumps([["sh", "-c", show], ["sh", "-c", "kill -9 $$"]])]
    caller = {"TMPDIR": "/caller", "CUDA_VISIBLE_DEVICES": "0", "MINE": "here", "PATH": "/usr/bin:/bin"}
    news = list(follow(command, str(tmp_path), caller, granted))
    assert log.read_text() == f"/node {3 if granted else 0} none here\n"
    assert [list(said) for said in news] == [["node"], ["code"]]
    assert news[1]["code"] == 128 + 9


@pytest.mark.parametrize("address", ["127.0.0.1:99999999", "127.0.0.1:0", "127.0.0.1:x", "127.0.0.1", ":", "a\nb:1"])
def test_an_address_that_nothing_answers_at_is_one_sentence(address: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing answers at"), clusters.running_ray(address, tmp_path / "log"):
        pass


def test_a_node_that_does_not_see_the_workspace_says_so(tmp_path: Path) -> None:
    *_, said = follow([], str(tmp_path / "nowhere"), {}, False)
    assert "put the workspace on a filesystem that all nodes share" in said["problem"]


def test_a_stage_that_no_node_can_hold_is_named_before_anything_runs(tmp_path: Path) -> None:
    pipeline = SimpleNamespace(plan=[SimpleNamespace(name="train@a", addressing="train@a")])
    schedule = Schedule(pipeline, lambda _: Resources(num_gpus=1), tmp_path, retries=0)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="train@a asks for 1 CPUs and 1 GPUs, the largest node has 8 and 0; lower"):
        schedule.check_room(SimpleNamespace(largest_node=lambda: (8.0, 0.0)))  # type: ignore[arg-type]


def test_nobody_else_may_enter_the_folder_that_ray_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray opens the folder that it is given to everybody."""
    told: list[Path] = []

    @contextmanager
    def ray(log: Path, *, _temp_dir: str, **options: object) -> Iterator[None]:
        told.append(Path(_temp_dir))
        told[0].mkdir()
        told[0].chmod(0o777)
        yield

    monkeypatch.setattr(clusters, "_ray_session", ray)
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"):
        monkeypatch.setenv(name, "")  # put back afterwards
    with clusters.local_ray(1, tmp_path / "log"):
        assert told[0].parent.stat().st_mode & 0o777 == 0o700
    assert not told[0].parent.exists()


def test_resources_are_checked() -> None:
    machine = {"device": "auto", "memory_mb": 1, "workers": 0, "checkpoint_every": 1}
    half = checked(Machine, machine | {"resources": {"train": {"num_gpus": 0.5}}}, "machine")
    assert half.resources["train"] == Resources(num_cpus=1, num_gpus=0.5)
    with pytest.raises(BadInput, match="num_cpu"):
        checked(Machine, machine | {"resources": {"train": {"num_cpu": 1}}}, "machine")


def test_new_stages_follow_the_old_ones_in_the_plans_order_over_several_calls(tmp_path: Path) -> None:
    lock, memory = tmp_path / "dvc.lock", tmp_path / "memory"

    def write(*names: str) -> None:
        lock.write_text(yaml.safe_dump({"stages": dict.fromkeys(names, {"cmd": "x"})}, sort_keys=False))

    write("b", "a")
    LockOrder(memory).remember(lock)
    write("b", "a", "e", "c")  # one call ends here, interrupted
    LockOrder(memory).remember(lock)
    write("b", "a", "e", "c", "d")
    LockOrder(memory).restore(["a", "b", "c", "d", "e"])
    assert list(yaml.safe_load(lock.read_text())["stages"]) == ["b", "a", "c", "d", "e"]


def test_what_a_terminal_would_obey_is_not_shown_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"first\n\x1b[2J\x1b]0;title\x07failed\xff\n")
    assert tail(tmp_path / "log") == "    first\n    failed\ufffd"
