"""Every benchmark by name, and the table that shows them."""

from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter

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

RATIOS = ("ratio", "least_ratio", "largest_ratio")
BENCHMARKS: dict[str, Callable[[int], dict[str, float]]] = {
    **{name: partial(bench_evaluation, name) for name in (*EVALUATION_CASES, "sampling_20way", "peak_fraction")},
    "eval_castle_5way_encoder": partial(bench_encoder, 5),
    "eval_castle_20way_encoder": partial(bench_encoder, 20),
    **{name: partial(bench_heads, name) for name in HEAD_CASES},
    **{name: partial(steps.bench_steps, name) for name in steps.CASES},
    **{name: partial(training.bench_training, name) for name in training.CASES},
    **{name: partial(training.bench_bf16, name) for name in training.BF16_CASES},
    "decode": partial(bench_decoding, decode),
    "decode_reduced": partial(bench_decoding, decode_reduced),
    **{name: partial(growth.bench_growth, name) for name in (*growth.TASKS, *growth.SEEN)},
}


def measure(names: Iterable[str], repeats: int) -> dict[str, dict[str, float]]:
    """Run these benchmarks one after the other; one that others disturbed is run a second time."""
    console = Console(stderr=True)
    figures = {}
    for name in names:
        with console.status(f"measuring {name}"):
            figures[name] = _measure_one(name, repeats)
            if disturbed(figures[name]):
                figures[name] = min(figures[name], _measure_one(name, repeats), key=itemgetter("others"))
    return figures


def _measure_one(name: str, repeats: int) -> dict[str, float]:
    with cores_of_others() as others:
        figures = BENCHMARKS[name](repeats)
    return figures | {"others": others[0]}


def disturbed(figures: dict[str, float]) -> bool:
    """Whether others used the machine meanwhile, so that its ratio says nothing."""
    return figures["others"] > QUIET


def busy(figures: dict[str, dict[str, float]]) -> str:
    """A sentence about the figures that were taken beside others; empty where the machine was ours."""
    beside = {name: one["others"] for name, one in figures.items() if disturbed(one)}
    if not beside:
        return ""
    most = f"others used up to {max(beside.values()):.1f} cores of this machine, expected at most {QUIET}"
    return f"no ratio of {', '.join(beside)}: {most}; measure again when it is idle, or give --busy"


def as_json(figures: dict[str, dict[str, float]], *, all_ratios: bool) -> dict[str, dict[str, float | None]]:
    """Both times, the ratio of each and between which values it lay; no ratio where others disturbed it."""
    shown: dict[str, dict[str, float | None]] = {}
    for name, one in figures.items():
        shown[name] = {each: one[each] for each in ("ours_s", "reference_s")}
        shown[name] |= {each: one[each] if all_ratios or not disturbed(one) else None for each in RATIOS}
    return shown


def show(figures: dict[str, dict[str, float]], *, all_ratios: bool) -> None:
    """Print the table; peak memory where it was measured, a dash for ratios that others disturbed."""
    table = Table("benchmark", "ours", "reference", "ratio", "from – to", "our peak memory", "the reference's")
    for name, one in figures.items():
        memory = [f"{one[side]:.0f} MB" for side in ("ours_peak_mb", "reference_peak_mb") if side in one]
        ratio, *spread = [f"{one[each]:.3g}" if all_ratios or not disturbed(one) else "–" for each in RATIOS]
        times = f"{one['ours_s']:.3g} s", f"{one['reference_s']:.4g} s"
        table.add_row(name, *times, ratio, " – ".join(spread), *memory)
    Console(width=100).print(table)
