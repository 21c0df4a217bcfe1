"""The README says what the records say, and names only tools and files that exist."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def claims_block(claims: dict[str, dict[str, str]]) -> str:
    """The README's table of claims, as it follows from paper/claims.json."""
    counts = Counter(claim["verdict"] for claim in claims.values())
    order = [verdict for verdict in ("holds", "fails", "cannot say") if counts[verdict]]
    lines = ["**" + ", ".join(f"{counts[verdict]} {verdict}" for verdict in order) + "**", ""]
    lines += ["<details><summary>All claims</summary>", "", "| claim | verdict | effect |", "|---|---|---|"]
    for claim in claims.values():
        effect = "" if claim["effect"] is None else f"{claim['effect']:+.2f}"
        lines.append(f"| {claim['statement']} | {claim['verdict']} | {effect} |")
    return "\n".join([*lines, "", "</details>"])


def test_the_claims_are_those_of_the_last_rendering() -> None:
    claims = json.loads((ROOT / "paper" / "claims.json").read_text())["claims"]
    shown = README.split("<!-- claims -->")[1].split("<!-- /claims -->")[0].strip()
    assert shown == claims_block(claims)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"tools/[a-z_/]*[a-z](?:\.yaml)?", README))))
def test_every_tool_that_is_named_exists(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"!\[[^]]*\]\(([^)]+)\)", README))))
def test_every_picture_is_in_the_repository(path: str) -> None:
    assert (ROOT / path).is_file()


def test_every_experiment_command_names_known_parameters() -> None:
    params = (ROOT / "params.yaml").read_text()
    for name in re.findall(r"-S (\w+)=", README):
        assert re.search(rf"^{name}:", params, re.MULTILINE), name
