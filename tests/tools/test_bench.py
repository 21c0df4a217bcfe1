"""tools/bench: the promised names, and a clear word about any other."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.benchmarks import training
from tools.benchmarks.all import busy
from tools.benchmarks.heads import bench_heads
from tools.benchmarks.others import cores_of_others

ROOT = Path(__file__).resolve().parents[2]
PROMISED = {
    *("eval_castle_5way", "eval_acastle_5way", "eval_castle_20way", "eval_acastle_20way", "eval_castle_5way_map"),
    *("head_castle_64", "head_castle_256", "head_acastle_64", "head_acastle_256"),
    *("train_castle_28px", "train_castle_32px", "pretrain_28px"),
    *("sampling_20way", "decode", "peak_fraction", "step_castle_64", "step_acastle_64"),
    *("eval_castle_5way_encoder", "eval_castle_20way_encoder"),
    *("growth_1k_tasks", "growth_10k_tasks", "growth_100k_tasks"),
    *("growth_64_seen", "growth_351_seen", "growth_1000_seen"),
}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "bench"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_json_has_both_times_and_their_ratio() -> None:
    done = bench("--only", "head_castle_64", "--repeats", "1", "--json", "--busy")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures.keys() == {"head_castle_64"}
    assert figures["head_castle_64"].keys() == {"ours_s", "reference_s", "ratio"}
    assert figures["head_castle_64"]["ratio"] > 1


def test_heads_need_less_than_half_of_the_reference_s_memory() -> None:
    figures = bench_heads("head_castle_64", 1)
    assert figures["ours_peak_mb"] <= figures["reference_peak_mb"] / 2


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    done = bench("--only", "nothing")
    assert done.returncode == 2
    assert all(name in done.stderr for name in PROMISED)


def test_no_ratio_is_printed_of_a_machine_that_others_use() -> None:
    assert busy({"one": {"others": 0.1}}) == ""
    assert busy({"one": {"others": 0.1}, "two": {"others": 1.3}}).startswith("others used up to 1.3 cores")


def test_others_are_told_from_ourselves() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        with cores_of_others() as found:
            deadline = time.process_time() + 0.3
            while time.process_time() < deadline:
                pass
        other.kill()
    assert found[0] > 0.2  # a running child is no less a stranger than any process


def test_a_training_is_measured_beside_the_bare_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "PER_CLASS", 4)
    monkeypatch.setattr(training, "STEPS", 1)
    figures = training.bench_training("train_castle_28px", 1)
    assert figures.keys() == {"ours_s", "reference_s", "ratio"}
