"""paper/FINDINGS.md: what reproduced and what did not, with the numbers, from the editions' files."""

from collections.abc import Callable, Sequence
from typing import Any

from repro.editions.edition import Edition
from repro.editions.sides import RecordsSide
from repro.report.facts import Methods
from repro.report.tables import rounded, signed
from repro.results.intervals import Mean
from repro.results.store import Cell, Reading
from stages.settings.grid import Grid, read_grid_file
from tools.editions import dictionary
from tools.editions.comparing import records_of
from tools.editions.methods import known_methods
from tools.editions.tables import NOTHING, row

# Verdict → how the page heads its claims.
HEADS = {
    "holds": "What reproduced",
    "tied": "What came out level",
    "fails": "What did not reproduce",
    "cannot say": "What these records cannot decide",
}
COLUMNS = {"s_s": "S→S", "u_u": "U→U", "hm": "HM", "cal_hm": "HM, calibrated", "ausuc": "AUSUC"}
OVERLAPPED = ("s_s", "hm", "ausuc")
DATASET, SHOT, WAY = "mini", 1, 5
Rows = dict[tuple[str, ...], list[Mean | None]]  # by the names that the row begins with


def findings(editions: Sequence[Edition]) -> str:
    """The page."""
    methods = known_methods()
    lines = ["# Findings", "", "Written by `tools/edition pages` from the editions' files."]
    for edition in editions:
        lines += ["", f"## {edition.name}: {edition.about.benchmark}", "", edition.summary(), edition.about.remark]
        claims = list(edition.claims().values())
        for verdict, head in HEADS.items():
            judged = [claim for claim in claims if claim["verdict"] == verdict]
            lines += ["", f"### {head}", "", *map(_claim, judged)] if judged else []
        with records_of(edition) as side:
            grid = read_grid_file(edition.folder / "grid.yaml")
            for section in (_calibration, _dictionary, _overlap):
                lines += ["", *section(side, grid, methods)]
    return "\n".join(lines).rstrip() + "\n"


def _claim(claim: dict[str, Any]) -> str:
    decided = claim["decided"]
    interval = f" ± {decided['interval']}" if decided["interval"] else ""
    why = f" {claim['diagnosis']}." if claim["diagnosis"] else ""
    effect = f"{decided['effect']}{interval}, the paper's {decided['published']}"
    return f"- {claim['statement']} ({claim['shown_in']}): {effect}.{why}"


def _calibration(side: RecordsSide, grid: Grid, methods: Methods) -> list[str]:
    """HM with and without calibration beside the backbone's seen accuracy: how much of HM is a matter of the bias."""
    rows: Rows = {
        (methods.label(method),): [
            side.mean(Reading(Cell(DATASET, method, SHOT), "gfsl", WAY, name)) for name in COLUMNS
        ]
        for method in _methods(grid)
    }
    return [
        f"### HM and the accuracy on seen classes ({DATASET}, {SHOT}-shot, {WAY} ways)",
        "",
        "Without calibration HM falls where seen and unseen scores differ in scale; calibrated HM and AUSUC do not.",
        "",
        *_table(["method", *COLUMNS.values()], rows),
    ]


def _dictionary(side: RecordsSide, grid: Grid, methods: Methods) -> list[str]:
    """What the dictionary adds, dataset by dataset and shot by shot."""
    found: Rows = {
        (whole.dataset, str(whole.shot), methods.named(lacking)): dictionary.gains(whole, lacking, side.sample)
        for whole, lacking in dictionary.pairs(side.cells)
    }
    covers = [each.error.covers for gains in found.values() for each in gains if each and each.error]
    return [
        f"### What the dictionary adds ({dictionary.WAY} ways)",
        "",
        f"{methods.label(dictionary.WITH)} less the same trained without a dictionary, in points, task by task;",
        f"intervals as verdicts have them ({covers[0] if covers else 'nothing was measured here'}).",
        "",
        *_table(["dataset", "shots", "without", *dictionary.COLUMNS.values()], found, _gain),
    ]


def _overlap(side: RecordsSide, grid: Grid, methods: Methods) -> list[str]:
    """What training images among the seen test images do to the measures, by their share."""
    lines = [line for line in grid.lines().values() if line.dataset == DATASET]
    shares = sorted({percent for line in lines for percent in line.overlap})
    protocols = {0: "gfsl", **{percent: f"overlap{percent}" for percent in shares}}
    head = ["method", *(f"{COLUMNS[name]}, {percent} %" for name in OVERLAPPED for percent in protocols)]
    rows: Rows = {
        (methods.label(method),): [
            side.mean(Reading(Cell(DATASET, method, SHOT), protocol, WAY, measure))
            for measure in OVERLAPPED
            for protocol in protocols.values()
        ]
        for method in _methods(grid)
        if any(line.overlap for line in lines if line.method == method)
    }
    return [
        f"### Training images among the seen test images ({DATASET}, {SHOT}-shot, {WAY} ways)",
        "",
        "So many percent of every seen class's test images are replaced by training images of the class, as about 47 %",
        "of the published extra images of MiniImageNet seem to be; nothing else changes.",
        "",
        *_table(head, rows),
    ]


def _methods(grid: Grid) -> list[str]:
    return list(dict.fromkeys(line.method for line in grid.lines().values() if line.dataset == DATASET))


def _mean(found: Mean) -> str:
    """With the interval over tasks."""
    return f"{rounded(found.mean)} ± {rounded(found.ci)}"


def _gain(found: Mean) -> str:
    """With the interval that verdicts use."""
    return f"{signed(found.mean)} ± {rounded(found.shown)}"


def _table(head: list[str], rows: Rows, shown: Callable[[Mean], str] = _mean) -> list[str]:
    """A row for everything that has a number."""
    values = {names: [shown(one) if one else NOTHING for one in found] for names, found in rows.items() if any(found)}
    return [row(head), row(["---"] * len(head)), *(row([*names, *cells]) for names, cells in values.items())]
