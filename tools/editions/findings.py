"""paper/FINDINGS.md: what reproduced and what did not, with the numbers, from the editions' files."""

from collections.abc import Sequence
from typing import Any

from repro.editions.edition import Edition
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
        lines += ["", *_calibration(edition)]
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
    lines = [
        f"### HM and the accuracy on seen classes ({DATASET}, {SHOT}-shot, {WAY} ways)",
        "",
        "Without calibration HM falls where seen and unseen scores differ in scale; calibrated HM and AUSUC do not.",
        "",
        row(head),
        row(["---"] * len(head)),
    ]
    grid = read_grid_file(edition.folder / "grid.yaml")
    methods = dict.fromkeys(line.method for line in grid.lines().values() if line.dataset == DATASET)
    with restored(edition) as side:
        for method in methods:
            cell = Cell(DATASET, method, SHOT)
            found = [side.mean(Reading(cell, "gfsl", WAY, measure)) for measure in MEASURES]
            if any(found):
                lines.append(row([method, *(f"{one.mean:.2f} ± {one.ci:.2f}" if one else NOTHING for one in found)]))
    return lines
