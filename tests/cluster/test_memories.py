"""What is kept from call to call only tells how long a call takes, and in which order: damaged, it is done without."""

from pathlib import Path

import pytest

from tools.scheduling.durations import Durations
from tools.scheduling.lock_order import LockOrder
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
