"""What is kept from call to call only tells how long a call takes, and in which order: damaged, it is done without."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.scheduling.durations import Durations
from tools.scheduling.lock_order import LockOrder
from tools.scheduling.progress import Progress
from tools.scheduling.table import Board
from tools.watching.hope import FINDERS, Hope

DAMAGED = ["", "[1]", "3", '{"a": "x"}', '{"a": [1]}', "{", "[" * 5000, "null"]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_memory_of_durations_is_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "seconds.json").write_text(content)
    assert Durations(tmp_path / "seconds.json").expected([]) == {}


@pytest.mark.parametrize("content", ["", "[1]", "3", '{"a": 1}', "{", "[" * 5000, "null"])
def test_a_damaged_memory_of_the_locks_order_is_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "before.json").write_text(content)
    assert LockOrder(tmp_path / "before.json")._known() == {}


@pytest.mark.parametrize("error", [TypeError, AttributeError, IndexError, ValueError])
def test_words_about_a_first_result_never_end_a_run(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setitem(FINDERS, "pretrain", fails)
    assert Hope()("pretrain") == []


def test_time_left_is_a_bound_until_every_kind_of_stage_was_timed(tmp_path: Path) -> None:
    def progress(name: str, state: str, seconds: float = 0.0) -> Progress:
        return Progress(
            SimpleNamespace(addressing=name), name.partition("@")[0], tmp_path / "log", state, seconds=seconds
        )

    every = [progress("train@a", "ran", 60), progress("train@b", "waiting"), progress("paper", "waiting")]
    schedule: Any = SimpleNamespace(stages={one.name: one for one in every}, counts=Counter)
    board = Board(schedule, tmp_path / "seconds.json", Hope())
    assert board._left().endswith("; at least 1:00 min left")
    (tmp_path / "seconds.json").write_text('{"paper": 30}')
    assert Board(schedule, tmp_path / "seconds.json", Hope())._left().endswith("; about 1:30 min left")
    every[0].state = "failed"
    (tmp_path / "seconds.json").unlink()
    assert "left" not in Board(schedule, tmp_path / "seconds.json", Hope())._left()
