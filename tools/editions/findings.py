"""paper/FINDINGS.md: what reproduced and what did not, with the numbers, from the editions' files."""

from collections.abc import Sequence
from typing import Any

from repro.editions.edition import Edition
from repro.results.intervals import Mean
from repro.results.store import Cell, Reading
from stages.settings.grid import read_grid_file
from tools.editions.comparing import restored
from tools.editions.tables import NOTHING, row

# Verdict → how the page heads its claims.
HEADS = {
    "holds": "What reproduced",
    "tied": "What came out level",
    "fails": "What did not reproduce",
    "cannot say": "What these records cannot decide",
}
MEASURES = {"s_s": "S→S", "u_u": "U→U", "hm": "HM", "cal_hm": "HM, calibrated", "ausuc": "AUSUC"}
OVERLAPPED = ("s_s", "hm", "ausuc")
DATASET, SHOT, WAY = "mini", 1, 5


def findings(editions: Sequence[Edition]) -> str:
    """The page."""
    lines = [
        "# Findings",
        "",
        "Written by `tools/edition pages` from the editions' files.",
    ]
    for edition in editions:
        lines += ["", f"## {edition.name}: {edition.about.benchmark}", "", edition.summary(), edition.about.remark]
        claims = list(edition.claims().values())
        for verdict, head in HEADS.items():
            judged = [claim for claim in claims if claim["verdict"] == verdict]
            lines += ["", f"### {head}", "", *map(_claim, judged)] if judged else []
        lines += ["", *_calibration(edition), "", *_overlap(edition)]
    return "\n".join(lines).rstrip() + "\n"


def _claim(claim: dict[str, Any]) -> str:
    decided = claim["decided"]
    interval = f" ± {decided['interval']}" if decided["interval"] else ""
    why = f" {claim['diagnosis']}." if claim["diagnosis"] else ""
    effect = f"{decided['effect']}{interval}, the paper's {decided['published']}"
    return f"- {claim['statement']} ({claim['shown_in']}): {effect}.{why}"


def _calibration(edition: Edition) -> list[str]:
    """HM with and without calibration beside the backbone's seen accuracy: how much of HM is a matter of the bias."""
    head = ["method", *MEASURES.values()]
    with restored(edition) as side:
        rows = {
            method: [side.mean(Reading(Cell(DATASET, method, SHOT), "gfsl", WAY, measure)) for measure in MEASURES]
            for method in _methods(edition)
        }
    return [
        f"### HM and the accuracy on seen classes ({DATASET}, {SHOT}-shot, {WAY} ways)",
        "",
        "Without calibration HM falls where seen and unseen scores differ in scale; calibrated HM and AUSUC do not.",
        "",
        *_table(head, rows),
    ]


def _overlap(edition: Edition) -> list[str]:
    """What training images among the seen test images do to the measures, by their share."""
    lines = read_grid_file(edition.folder / "grid.yaml").lines().values()
    shares = sorted({percent for line in lines if line.dataset == DATASET for percent in line.overlap})
    protocols = {0: "gfsl", **{percent: f"overlap{percent}" for percent in shares}}
    head = ["method", *(f"{MEASURES[name]}, {percent} %" for name in OVERLAPPED for percent in protocols)]
    with restored(edition) as side:
        rows = {
            method: [
                side.mean(Reading(Cell(DATASET, method, SHOT), protocol, WAY, measure))
                for measure in OVERLAPPED
                for protocol in protocols.values()
            ]
            for method in _methods(edition)
            if any(line.overlap for line in lines if (line.dataset, line.method) == (DATASET, method))
        }
    return [
        f"### Training images among the seen test images ({DATASET}, {SHOT}-shot, {WAY} ways)",
        "",
        "So many percent of every seen class's test images are replaced by training images of the class, as about 47 %",
        "of the published extra images of MiniImageNet seem to be; nothing else changes.",
        "",
        *_table(head, rows),
    ]


def _methods(edition: Edition) -> list[str]:
    grid = read_grid_file(edition.folder / "grid.yaml")
    return list(dict.fromkeys(line.method for line in grid.lines().values() if line.dataset == DATASET))


def _table(head: list[str], rows: dict[str, list[Mean | None]]) -> list[str]:
    """A row for every method of which anything was measured."""
    shown = {method: found for method, found in rows.items() if any(found)}
    values = {
        method: [f"{one.mean:.2f} ± {one.ci:.2f}" if one else NOTHING for one in found]
        for method, found in shown.items()
    }
    return [row(head), row(["---"] * len(head)), *(row([method, *cells]) for method, cells in values.items())]
