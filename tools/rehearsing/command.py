"""What tools/rehearse does once its environment is there."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

import torch

from repro import paths
from stages.settings.grid import read_grid
from stages.settings.params import read_params
from tools.clock import clock
from tools.rehearsing import checks, report
from tools.rehearsing.choosing import Chosen
from tools.rehearsing.heavy import heavy_backbones
from tools.rehearsing.memory import memory_lines, too_large_steps
from tools.rehearsing.predicting import Predictor, Rehearsed
from tools.rehearsing.proving import compared, run_in_full
from tools.rehearsing.running import Rehearsal, scratch_folder
from tools.rehearsing.work import Stage, Work

UNDECODED = "files"  # what the doctor says of looking without decoding; a sample is decoded below


def say(line: str) -> None:
    """At once, also into a pipe."""
    print(line, flush=True)


@dataclass(frozen=True)
class Rehearsing:
    """One call: what is rehearsed, where, and on what."""

    root: Path
    work: Work
    device: torch.device
    places: int | None

    @property
    def stages(self) -> list[Stage]:
        return list(self.work.stages.values())

    def run(self, file: Path, prove: bool) -> int:
        """Rehearse, tell, write the report, and give the exit code. Raises BadInput before anything runs."""
        began = time.perf_counter()
        say(checks.describe_device(self.device))
        full, findings = checks.sizes_of_data(self.work, lambda name: say(f"looking at the data of {name}"))
        for name, found in findings.items():
            for each in found:
                if each.verdict == "warn" and each.check != UNDECODED:
                    say(f"warning: {name}: {each.check}: {shorten(each.seen, 200)}")
        heavy = heavy_backbones(self.work, full, self.device)
        chosen, copies = Chosen(self.work, heavy), checks.cache_copies(self.root)
        for line in checks.slow_here(self.device, self.work.params.precision.amp, heavy):
            say(line)
        with scratch_folder(self.root) as scratch:
            rehearsal = Rehearsal(self.work, self.root, scratch, self.device, say)
            here = self.places or len(rehearsal.places)
            counted = Predictor(self.work, chosen, Rehearsed({}, {}, {}, full, {}))
            self._warn_of_disk(counted, here, copies)
            too_large = too_large_steps(rehearsal, full)
            orders = rehearsal.orders(chosen.stages, full, heavy)
            measured = rehearsal.run(orders)
            rehearsed = rehearsal.rehearsed(orders, measured, full)
            memory = memory_lines(rehearsal, rehearsed, chosen, too_large)
        took, predictor = time.perf_counter() - began, Predictor(self.work, chosen, rehearsed)
        summed = report.totals(predictor, self.stages, here)
        failed = report.failure_lines(list(measured.values()))
        too_small = checks.disk_verdict(report.needed(summed, copies), self.root)
        unit = "GPUs" if self.device.type == "cuda" else "places"
        params = self.work.params
        lines = [
            f"# Rehearsal: {params.benchmark.name}, {params.benchmark.scale}",
            "",
            f"{checks.describe_device(self.device)}. {len(measured)} of {len(self.stages)} stages rehearsed in "
            f"{clock(took)}; `threads` {params.threads}, `amp` {params.precision.amp}, {len(params.seeds)} seeds.",
            "",
            *(failed or ["Every kind of stage works.", ""]),
            "## The whole run",
            "",
            *report.sum_lines(summed, here, copies, unit),
            *(report.busy_lines(predictor, self.stages, summed.seconds[1]) if self.device.type == "cpu" else []),
            f"- {too_small or 'it fits on this disk'}",
            *(f"- {line}" for line in memory or ["every step fits into memory"]),
            "",
            "## Stages",
            "",
            *report.stage_lines(predictor, self.stages),
        ]
        if prove:
            lines += ["", "## Predicted against measured", "", *self._proof(rehearsal, predictor)]
        report.write(file, lines)
        say("\n".join(lines))
        return int(bool(failed or too_small or memory))

    def _warn_of_disk(self, counted: Predictor, places: int, copies: int) -> None:
        """Counted before anything runs: hours would pass before the disk is full."""
        needed = report.needed(report.totals(counted, self.stages, places), copies)
        if verdict := checks.disk_verdict(needed, self.root):
            say(f"warning: {verdict}")

    def _proof(self, rehearsal: Rehearsal, predictor: Predictor) -> list[str]:
        with scratch_folder(self.root) as scratch:
            measured = run_in_full(rehearsal, scratch, self.stages)
        return compared(predictor, self.stages, measured)


def rehearse(root: Path, only: Sequence[str], file: Path, places: int | None, prove: bool) -> int:
    """Rehearse the workspace below `root`; give the exit code. Raises BadInput."""
    params = checks.from_root(read_params(root / paths.PARAMS), root)
    work = Work(params, read_grid(root), root, only)
    return Rehearsing(root, work, checks.device_of(work), places).run(file, prove)
