"""tools/bench: the promised names, and a clear word about any other."""

import json
import subprocess
import sys
from pathlib import Path

from tools.benchmarks.heads import bench_heads

ROOT = Path(__file__).resolve().parents[2]
PROMISED = {
    *("eval_castle_5way", "eval_acastle_5way", "eval_castle_20way", "eval_acastle_20way", "eval_castle_5way_map"),
    *("head_castle_64", "head_castle_256", "head_acastle_64", "head_acastle_256"),
    *("sampling_20way", "decode", "peak_fraction", "step_castle_64", "step_acastle_64"),
    *("eval_castle_5way_encoder", "eval_castle_20way_encoder"),
    *("growth_1k_tasks", "growth_10k_tasks", "growth_100k_tasks"),
    *("growth_64_seen", "growth_351_seen", "growth_1000_seen"),
}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "bench"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_json_has_both_times_and_their_ratio() -> None:
    done = bench("--only", "head_castle_64", "--repeats", "1", "--json")
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
