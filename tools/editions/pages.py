"""Pages that are written from the editions' files: their list, and the matrix of claims and editions."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repro import paths
from repro.editions.edition import EDITIONS, Edition, kept_edition, names
from repro.errors import BadInput
from repro.files import whole_file
from tools.editions.findings import findings
from tools.editions.tables import NOTHING, cell, row

PAGE, FINDINGS, README = EDITIONS / "README.md", paths.PAPER / "FINDINGS.md", Path("README.md")
PAPER_SCALE = "paper"  # the edition of the paper's own datasets, once somebody has run it
COUNTS = ("<!-- editions -->\n", "<!-- end of editions -->")  # where the README says how many claims hold, in each
MATRIX = ("<!-- claims × editions -->\n", "<!-- end of claims × editions -->")
BYTES = 1_000_000


def write_pages() -> list[Path]:
    """Write the list of editions, the findings and the matrix in README.md; gives what was written."""
    texts = pages(list(map(kept_edition, names())), README.read_text(encoding="utf-8"))
    for file, text in texts.items():
        with whole_file(file) as partial:
            partial.write_text(text, encoding="utf-8")
    return list(texts)


def pages(editions: Sequence[Edition], readme: str) -> dict[Path, str]:
    """Every page that is written from editions; raises BadInput where the README lacks its marks."""
    readme = between(between(readme, COUNTS, verdicts(editions)), MATRIX, matrix(editions))
    return {PAGE: page(editions), FINDINGS: findings(editions), README: readme}


def between(text: str, marks: tuple[str, str], part: str) -> str:
    """A text with a part between its two marks; raises BadInput where it lacks them."""
    begin, end = marks
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    if len(re.findall(pattern, text, re.DOTALL)) != 1:
        message = f"{README}: the lines {begin.strip()} and {end} are not there once"
        raise BadInput(f"{message}, expected both where `tools/edition pages` writes; add them")
    return re.sub(pattern, lambda _: f"{begin}{part}{end}", text, flags=re.DOTALL)


def verdicts(editions: Sequence[Edition]) -> str:
    """A line for each edition: how many claims hold, and where each of them stands."""
    lines = [
        f"- **{each.name}** ({each.about.benchmark}, {_seeds(each)}): {each.summary()} "
        f"[Claims]({EDITIONS}/{each.name}/claims.md), [report]({EDITIONS}/{each.name}/report.html)."
        for each in editions
    ]
    return "\n".join(lines) + "\n"


def page(editions: Sequence[Edition]) -> str:
    """The page that lists editions."""
    lines = [
        "# Editions",
        "",
        "Results of one scale with its seeds and the records behind them; `tools/edition pages` writes this page.",
        "`tools/edition rebuild NAME --out FOLDER` renders an edition again from its records, and",
        "`tools/doctor --edition NAME` says whether the working tree would give it, and did.",
        "",
        "| edition | data | seeds | claims | records, all | files |",
        "|---|---|---|---|---|---|",
        *(_listed(edition) for edition in editions),
        "",
        "## Claims × editions",
        "",
    ]
    return "\n".join(lines) + "\n" + matrix(editions)


def _listed(edition: Edition) -> str:
    about, folder = edition.about, edition.folder
    records = sum(file.stat().st_size for file in folder.glob("records.*")) / BYTES
    whole = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / BYTES
    files = ("report.html", "tables.tex", "claims.md", "params.yaml", "provenance.json")
    links = " · ".join(f"[{name}]({edition.name}/{name})" for name in files)
    seeds = ", ".join(map(str, about.seeds))
    if about.joined:
        seeds = f"{'; '.join(about.joined)} (run apart)"
    remark = f" {cell(about.remark)}" if about.remark else ""
    return (
        f"| **{edition.name}** | {cell(about.benchmark)}.{remark} | {seeds} | {edition.summary()} "
        f"| {records:.1f} MB, {whole:.1f} MB | {links} |"
    )


def matrix(editions: Sequence[Edition]) -> str:
    """A row per claim: the paper's effect, then each edition's effect with its interval and verdict."""
    claims = {edition.name: edition.claims() for edition in editions}
    rows: dict[str, Mapping[str, Any]] = {}
    for each in claims.values():
        rows |= {key: claim for key, claim in each.items() if key not in rows}
    columns = [edition.name for edition in editions]
    empty = [] if PAPER_SCALE in columns else ["paper scale"]
    head = ["claim of the paper", "shown in", "paper's effect", *columns, *empty]
    lines = [row(head), row(["---"] * len(head))]
    for key, claim in rows.items():
        found = [_effect(claims[name].get(key)) for name in columns]
        lines.append(
            row([claim["statement"], claim["shown_in"], claim["published"], *found, *([NOTHING] * len(empty))])
        )
    notes = [f"**{each.name}**: {each.about.benchmark}, {_seeds(each)}." for each in editions]
    if empty:
        notes.append("**paper scale**: the paper's own datasets and backbones have not been run.")
    return "\n".join([*lines, "", " ".join(notes)]) + "\n"


def _effect(claim: Mapping[str, Any] | None) -> str:
    if claim is None or claim["decided"]["effect"] == NOTHING:
        return NOTHING
    decided = claim["decided"]
    interval = f" ± {decided['interval']}" if decided["interval"] else ""
    return f"{decided['effect']}{interval}, {claim['verdict']}"


def _seeds(edition: Edition) -> str:
    number = len(edition.about.seeds)
    return "one seed" if number == 1 else f"{number} seeds"
