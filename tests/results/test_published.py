"""The transcription of the paper's tables: complete, equal to the source, and refused when broken."""

import re
from pathlib import Path

import pytest

from repro.errors import BadInput
from repro.results.published import PublishedTable, read_published

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "paper" / "published.yaml"
SOURCE = ROOT.parent / "shared" / "paper" / "castle.tex"

# Numbers and intervals per table, counted by hand in the paper.
COUNTS = {
    "T1a": (16, 16),
    "T1b": (16, 16),
    "T2": (46, 30),  # Δ is printed without an interval; IFSL has no harmonic mean
    "T3": (56, 56),
    "T4": (48, 48),
    "T5": (24, 24),
    "T6": (24, 24),
    "T7": (4, 4),
    "T8": (16, 16),
    "T9": (16, 16),
    "T10": (4, 4),
    "T11": (4, 4),
    "T12": (12, 12),
}
CITED = {"T2": 1, "T5": 10, "T6": 10}


@pytest.fixture(scope="module")
def published() -> dict[str, PublishedTable]:
    return read_published(PUBLISHED)


def flat(table: PublishedTable) -> list[list[float]]:
    """Value and interval of every number of every row, in printed order."""
    return [
        [part for number in row.numbers.values() for part in (number.value, number.interval) if part is not None]
        for row in table.rows.values()
    ]


def test_every_table_has_as_many_numbers_as_the_paper(published: dict[str, PublishedTable]) -> None:
    counted = {
        key: (
            sum(len(row.numbers) for row in table.rows.values()),
            sum(number.interval is not None for row in table.rows.values() for number in row.numbers.values()),
        )
        for key, table in published.items()
    }
    assert counted == COUNTS | {"text": (3, 0)}


def test_only_rows_of_other_papers_are_cited(published: dict[str, PublishedTable]) -> None:
    cited = {key: sum(row.kind == "cited" for row in table.rows.values()) for key, table in published.items()}
    assert {key: count for key, count in cited.items() if count} == CITED


def test_numbers_known_by_heart(published: dict[str, PublishedTable]) -> None:
    def pair(table: str, row: str, column: str) -> tuple[float, float | None]:
        number = published[table].number(row, column)
        assert number is not None
        return number.value, number.interval

    assert pair("T2", "acastle", "5shot_hm") == (78.33, 0.09)
    assert pair("T2", "castle", "1shot_delta") == (10.09, None)
    assert pair("T4", "mc_knn", "1shot_hm") == (0.01, 0.00)
    assert pair("T12", "upper_bound", "allway_gfsl") == (68.72, 0.12)
    assert published["T2"].number("ifsl", "1shot_hm") is None


@pytest.mark.parametrize("key", COUNTS)
def test_the_transcription_equals_the_source(key: str, published: dict[str, PublishedTable]) -> None:
    if not SOURCE.is_file():
        pytest.skip("the paper's source is not here: the transcription was NOT compared with it")
    source = SOURCE.read_text()
    end = source.index(f"\\label{{{published[key].label}}}")
    tabular = source[source.rindex("\\begin{tabular}", 0, end) : end]
    rows = [re.findall(r"\d+\.\d+", row) for row in tabular.split("\\\\")]
    assert [[float(number) for number in row] for row in rows if row] == flat(published[key])


def test_numbers_of_the_text_stand_in_its_sentences(published: dict[str, PublishedTable]) -> None:
    text = published["text"]
    protonet, dfsl = (text.number(row, "cal_hm") for row in ("protonet", "dfsl"))
    ratio = text.number("protonet", "conf_ratio")
    assert protonet and dfsl and ratio
    if not SOURCE.is_file():
        pytest.skip("the paper's source is not here: the transcription was NOT compared with it")
    source = SOURCE.read_text()
    assert rf"({protonet.value:.2f}\% vs. {dfsl.value:.2f}\%)" in source
    assert f"on average {ratio.value:g} times higher" in source


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2]",
        "T1: {rows: {}}",
        "T1: {label: x, rows: {a: {kind: guessed, values: {b: [1, 2]}}}}",
        "T1: {label: x, rows: {a: {kind: cited, values: {b: 3}}}}",
        "{",
    ],
)
def test_a_broken_file_is_refused_in_one_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "published.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match="not a list of published tables"):
        read_published(file)
