"""The protocol card: every recorded measure has one row, and what it says of denominators holds on a task by hand."""

import pytest
import torch

from repro.evaluation.metrics import QueryOutcomes, measures
from repro.report.protocol_card import PROTOCOLS
from repro.report.templates import markdown_environment
from repro.results.records import MEASURES
from tests.report.conftest import PAPER


def test_every_recorded_measure_stands_in_exactly_one_row() -> None:
    assert sorted(name for row in PROTOCOLS for name in row.measures) == sorted(MEASURES)


def test_the_card_is_one_table_with_a_line_per_row() -> None:
    page = markdown_environment(PAPER / "templates").get_template("protocol.md").render(protocols=PROTOCOLS, query=15)
    lines = [line for line in page.splitlines() if line.startswith("|")]
    assert len(lines) == len(PROTOCOLS) + 2
    assert {line.replace("\\|", "").count("|") for line in lines} == {9}


@pytest.mark.parametrize(("measure", "percent"), [("acc", 37.5), ("s_s", 50), ("s_su", 50), ("u_u", 50), ("u_su", 25)])
def test_accuracies_divide_by_the_queries_that_the_card_names(measure: str, percent: float) -> None:
    """Four seen queries, two right in S and kept; four unseen ones, two right in U, one of them called seen."""
    margin = torch.tensor([[1.0, 1.0, 1.0, 1.0, -1.0, 1.0, -1.0, -1.0]])
    right = torch.tensor([[True, True, False, False, True, True, False, False]])
    found = measures(QueryOutcomes(margin, right, torch.zeros(1, 8, dtype=torch.long), 4), bias=0.0)
    assert found[measure].item() == percent
