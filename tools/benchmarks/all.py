"""Every benchmark by name, and the table that shows them."""

from collections.abc import Callable, Iterable
from functools import partial

from rich.console import Console
from rich.table import Table

from tools.benchmarks import growth, steps, training
from tools.benchmarks.decoding import bench_decoding, decode, decode_reduced
from tools.benchmarks.encoder import bench_encoder
from tools.benchmarks.evaluation import CASES as EVALUATION_CASES
from tools.benchmarks.evaluation import bench_evaluation
from tools.benchmarks.heads import CASES as HEAD_CASES
from tools.benchmarks.heads import bench_heads
from tools.benchmarks.others import QUIET, cores_of_others

BENCHMARKS: dict[str, Callable[[int], dict[str, float]]] = {
    **{name: partial(bench_evaluation, name) for name in (*EVALUATION_CASES, "sampling_20way", "peak_fraction")},
    "eval_castle_5way_encoder": partial(bench_encoder, 5),
    "eval_castle_20way_encoder": partial(bench_encoder, 20),
    **{name: partial(bench_heads, name) for name in HEAD_CASES},
    **{name: partial(steps.bench_steps, name) for name in steps.CASES},
    **{name: partial(training.bench_training, name) for name in training.CASES},
    "decode": partial(bench_decoding, decode),
    "decode_reduced": partial(bench_decoding, decode_reduced),
    **{name: partial(growth.bench_growth, name) for name in (*growth.TASKS, *growth.SEEN)},
}


def measure(names: Iterable[str], repeats: int) -> dict[str, dict[str, float]]:
    """Run these benchmarks one after the other, a line on standard error for each."""
    console = Console(stderr=True)
    figures = {}
    for name in names:
        with console.status(f"measuring {name}"), cores_of_others() as others:
            figures[name] = BENCHMARKS[name](repeats)
        figures[name]["others"] = others[0]
    return figures


def busy(figures: dict[str, dict[str, float]]) -> str:
    """A sentence about a machine that others used while these were measured; empty where it was ours."""
    most = max(one["others"] for one in figures.values())
    if most <= QUIET:
        return ""
    seen = f"others used up to {most:.1f} cores of this machine, expected at most {QUIET}"
    return f"{seen}: no ratio is to be had; measure again when it is idle, or give --busy"


def show(figures: dict[str, dict[str, float]]) -> None:
    """Print the table; peak memory where it was measured."""
    table = Table("benchmark", "ours", "reference", "ratio", "our peak memory", "the reference's")
    for name, one in figures.items():
        memory = [f"{one[side]:.0f} MB" for side in ("ours_peak_mb", "reference_peak_mb") if side in one]
        table.add_row(name, f"{one['ours_s']:.3g} s", f"{one['reference_s']:.4g} s", f"{one['ratio']:.3g}", *memory)
    Console(width=100).print(table)
