"""tools/bench: the promised names, and a clear word about any other."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from tests.paths import ROOT
from tools.benchmarks import all as all_benchmarks
from tools.benchmarks import training
from tools.benchmarks.all import RATIOS, as_json, busy
from tools.benchmarks.decoding import bench_decoding, decode
from tools.benchmarks.heads import bench_heads
from tools.benchmarks.others import cores_of_others
from tools.benchmarks.timing import at_best_threads, interleaved

PROMISED = {
    *("eval_castle_5way", "eval_acastle_5way", "eval_castle_20way", "eval_acastle_20way", "eval_castle_5way_map"),
    *("head_castle_64", "head_castle_256", "head_acastle_64", "head_acastle_256"),
    *("train_castle_28px", "train_castle_32px", "pretrain_28px"),
    *("bf16_28px", "bf16_32px"),
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
    assert figures["head_castle_64"].keys() == {"ours_s", "reference_s", *RATIOS}
    assert figures["head_castle_64"]["ratio"] > 1


def test_heads_need_less_than_half_of_the_reference_s_memory() -> None:
    figures = bench_heads("head_castle_64", 1)
    assert figures["ours_peak_mb"] <= figures["reference_peak_mb"] / 2


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    done = bench("--only", "nothing")
    assert done.returncode == 2
    assert all(name in done.stderr for name in PROMISED)


def test_no_ratio_is_given_of_what_others_disturbed() -> None:
    quiet = {"ours_s": 1.0, "reference_s": 5.0, "ratio": 5.0, "least_ratio": 4.0, "largest_ratio": 6.0, "others": 0.1}
    assert busy({"one": quiet}) == ""
    both = {"one": quiet, "two": quiet | {"others": 1.3}}
    assert busy(both).startswith("no ratio of two: others used up to 1.3 cores")
    for name, value in {"ratio": 5.0, "least_ratio": 4.0, "largest_ratio": 6.0}.items():
        assert [one[name] for one in as_json(both, all_ratios=False).values()] == [value, None]
        assert [one[name] for one in as_json(both, all_ratios=True).values()] == [value, value]


def test_a_figure_is_the_median_and_says_between_which_values_the_ratio_lay() -> None:
    times = iter([0, 1, 1, 3, 3, 4, 4, 10, 10, 12, 12, 20])  # seconds: ours 1, 1, 2; the reference 2, 6, 8
    figures = interleaved(lambda: None, lambda: None, 3, clock=lambda: next(times))
    assert figures == {"ours_s": 1, "reference_s": 6, "ratio": 4, "least_ratio": 2, "largest_ratio": 6}


def test_a_reference_runs_at_the_number_of_threads_at_which_it_is_fastest() -> None:
    seen, before = list[int](), torch.get_num_threads()
    times = iter([0, 3, 3, 5])  # seconds: 3 with one thread, 2 with two
    work = at_best_threads(lambda: seen.append(torch.get_num_threads()), (1, 2), clock=lambda: next(times))
    assert seen == [before, 1, 2]
    work()
    assert seen[-1] == 2
    assert torch.get_num_threads() == before


def test_a_disturbed_figure_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([1.3, 0.1])

    @contextmanager
    def cores() -> Iterator[list[float]]:
        yield [next(shares)]

    monkeypatch.setattr(all_benchmarks, "cores_of_others", cores)
    monkeypatch.setitem(all_benchmarks.BENCHMARKS, "one", lambda repeats: {"ratio": float(repeats)})
    assert all_benchmarks.measure(["one"], 3) == {"one": {"ratio": 3.0, "others": 0.1}}


def test_the_processes_of_a_benchmark_are_not_others() -> None:
    before = os.times()
    bench_decoding(decode, 1)
    after = os.times()
    assert after.children_user - before.children_user > 0.5  # two rounds of 960 pictures, counted as ours


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
    assert figures.keys() == {"ours_s", "reference_s", *RATIOS}
