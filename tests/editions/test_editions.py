"""An edition: kept from a finished run, small, and rendered again byte for byte where there is nothing else."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from repro import paths
from repro.editions.columns import absolute, counted, relative, restored
from repro.editions.edition import EDITIONS, Edition, names
from repro.editions.restoring import restore_records
from repro.errors import BadInput
from repro.files import seal
from repro.results.records import MEASURES, RECORDS, read_records
from repro.results.store import Cell, Reading, Replicate, Sample
from tests.editions.conftest import NAME
from tests.paths import ROOT
from tools.editions import dictionary
from tools.editions.command import perform
from tools.editions.findings import findings
from tools.editions.pages import COUNTS, MATRIX, between, matrix, page, pages, verdicts
from tools.editions.rebuilding import RENDERED

pytestmark = pytest.mark.timeout(1200)


def test_a_clone_without_records_rebuilds_every_byte_of_the_paper(
    workspace: tuple[Path, list[str]], edition: Edition, clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not (clone / "results" / "cells").exists() and not (clone / "data").exists()
    for file in RENDERED.values():
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    assert perform("rebuild", NAME, None) == 0
    assert "every byte as kept" in capsys.readouterr().out
    for name in ("tables.tex", "report.html", "claims.json", "provenance.json", "figures/F7_ausuc.png"):
        assert (clone / "paper" / name).read_bytes() == (workspace[0] / "paper" / name).read_bytes()


def test_what_is_kept_task_by_task_comes_back_bit_by_bit(
    workspace: tuple[Path, list[str]], edition: Edition, tmp_path: Path
) -> None:
    restore_records(edition.folder, tmp_path / "cells", edition.origins())
    for file in sorted((workspace[0] / paths.ALL_RESULTS).glob(f"*/*/{RECORDS}")):
        whole, kept = (
            read_records(root / file.relative_to(workspace[0] / paths.ALL_RESULTS))
            for root in (workspace[0] / paths.ALL_RESULTS, tmp_path / "cells")
        )
        there = {name: ~np.isnan(kept.columns[name]) for name in MEASURES}
        for measure, rows in there.items():
            np.testing.assert_array_equal(whole.columns[measure][rows], kept.columns[measure][rows], str(file))
        joint = whole.columns["protocol"] == "gfsl"
        assert there["hm"][joint].all() or "-castle-1shot-" in str(file), "tables read the HM of every main cell"


def test_counts_say_it_all_and_what_is_no_count_stays_as_it_is() -> None:
    draw = np.random.default_rng(0)
    queries = 75
    counts = {name: draw.integers(0, queries + 1, 500).astype(np.int32) for name in ("s_s", "u_u", "s_su", "u_su")}
    values = restored(counts, queries)
    assert set(values) == {*counts, "acc", "hm", "delta"}
    found, covered = counted({**values, "ausuc": draw.random(500).astype(np.float32)}, queries)
    assert covered == set(values)
    back = absolute(relative(found))
    assert all(np.array_equal(back[name], counts[name]) for name in counts)
    _, covered = counted({**values, "hm": np.nextafter(values["hm"], np.float32(200))}, queries)
    assert "hm" not in covered and "s_su" in covered


def test_an_edition_of_other_parameters_is_not_rendered_over_the_paper(edition: Edition, clone: Path) -> None:
    params = clone / "params.yaml"
    params.write_text(params.read_text().replace("threads: 1", "threads: 2", 1))
    with pytest.raises(BadInput, match=r"not that of small \(threads: 1 → 2\); give --out FOLDER"):
        perform("rebuild", NAME, None)
    assert perform("rebuild", NAME, clone / "aside") == 0
    assert (clone / "aside" / "tables.tex").read_bytes() == (edition.folder / "tables.tex").read_bytes()


def test_an_edition_of_other_seeds_is_rendered_over_the_paper_and_says_so(
    edition: Edition, clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = clone / "params.yaml"
    params.write_text(yaml.safe_dump(yaml.safe_load(params.read_text()) | {"seeds": [7, 8]}))
    (clone / "paper" / "tables.tex").unlink()
    assert perform("rebuild", NAME, None) == 0
    assert "params.yaml has 7, 8, which `dvc repro paper` would render" in capsys.readouterr().out
    assert (clone / "paper" / "tables.tex").read_bytes() == (edition.folder / "tables.tex").read_bytes()


def test_a_changed_file_and_an_unknown_name_are_named(edition: Edition, clone: Path) -> None:
    with pytest.raises(BadInput, match="edition is 'moon', expected one of those in paper/editions: small"):
        perform("check", "moon", None)
    with pytest.raises(BadInput, match="name is '../x', expected small letters"):
        perform("keep", "../x", None)
    with pytest.raises(BadInput, match="no dataset.json|expected a finished run"):
        perform("keep", "empty", None)
    assert not (EDITIONS / "empty").exists()
    (edition.folder / "records.parquet").write_bytes(b"PAR1")
    with pytest.raises(BadInput, match=r"records.parquet: content is .* get it anew with `git checkout"):
        perform("check", NAME, None)


def changed(edition: Edition, name: str, change: Callable[[Any], object]) -> None:
    """A file of the edition with other content, and a seal that agrees with it."""
    file = edition.folder / name
    packed = file.suffix == ".gz"
    content = json.loads(gzip.decompress(file.read_bytes()) if packed else file.read_bytes())
    change(content)
    text = json.dumps(content).encode()
    file.write_bytes(gzip.compress(text) if packed else text)
    seal(edition.folder)


def endless(content: dict[str, Any]) -> None:
    for step in content["steps"].values():
        step["inputs"] = {"model": next(iter(content["steps"]))}


def pictured(address: str) -> Callable[[Any], object]:
    return lambda details: details["datasets"][0]["hardest"][0].update(picture=address)


FORGED: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "a copied file elsewhere": ("edition.json", lambda e: e.update(copied=["../../../params.yaml"]), "copied.0 is"),
    "a copied file anywhere": ("edition.json", lambda e: e.update(copied=["/etc/hostname"]), "copied.0 is"),
    "a dataset elsewhere": (
        "edition.json",
        lambda e: e["datasets"].update({"../x": next(iter(e["datasets"].values()))}),
        "datasets",
    ),
    "a benchmark that clears the terminal": (
        "edition.json",
        lambda e: e.update(benchmark="\x1b[2J"),
        "benchmark: .* is no text",
    ),
    "a remark of two lines": ("edition.json", lambda e: e.update(remark="a\n# b"), "remark: .* is no text"),
    "claims that are a list": ("claims.json", lambda c: c.update(claims=[1]), "claims.json: not what an edition keeps"),
    "claims without words": (
        "claims.json",
        lambda c: c["claims"].update(x={"statement": 3}),
        "claims.json: not what an edition keeps",
    ),
    "a summary that clears the terminal": (
        "claims.json",
        lambda c: c.update(summary="\x9b2J"),
        "claims.json: not what an edition keeps",
    ),
    "a chain without end": ("provenance.json", endless, "provenance.json: not what an edition keeps"),
    "a step there is not": (
        "provenance.json",
        lambda p: p.update(steps={}),
        "provenance.json: not what an edition keeps",
    ),
    "records of a cell elsewhere": (
        "records.json.gz",
        lambda r: [group.__setitem__(0, "../../../outer") for group in r["groups"]],
        "names no cell or seed|nothing is said of",
    ),
    "means of a cell elsewhere": (
        "records.json.gz",
        lambda r: r["estimates"].update({"../../../outer": {}}),
        "'../../../outer' names no cell or seed",
    ),
    "a picture from elsewhere": (
        "details.json.gz",
        pictured("https://elsewhere.example/x.png"),
        "picture is .* a PNG that the page holds itself",
    ),
    "a training that is none": ("details.json.gz", lambda d: d.update(trainings={"x": [3]}), "details.json.gz: "),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_edition_is_refused_and_nothing_is_written_elsewhere(
    name: str, edition: Edition, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, change, said = FORGED[name]
    changed(edition, file, change)
    (tmp_path / "temporary" / "in").mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary" / "in"))
    with pytest.raises(BadInput, match=said):
        forged = Edition(edition.folder)
        forged.claims(), forged.summary()
        perform("rebuild", NAME, clone / "aside")
    assert [path.name for path in (tmp_path / "temporary").rglob("*")] == ["in"]


def test_words_of_an_edition_stay_in_their_cell_of_a_page(edition: Edition) -> None:
    statement = "x | y <!-- end of claims × editions --> <script>"
    changed(edition, "claims.json", lambda c: next(iter(c["claims"].values())).update(statement=statement))
    (line,) = [line for line in matrix([Edition(edition.folder)]).splitlines() if "script" in line]
    assert line.startswith("| x \\| y &lt;!-- end of claims × editions --> &lt;script> |")


def test_who_may_read_an_editions_files_is_left_to_the_umask(edition: Edition, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = {file.name: file.stat().st_mode for file in edition.folder.iterdir() if file.is_file()}
    assert set(kept.values()) == {(tmp_path / "file").stat().st_mode}, kept


def test_the_matrix_shows_every_claim_with_the_papers_effect_and_the_editions_verdict(edition: Edition) -> None:
    table = matrix([edition])
    lines = table.splitlines()
    assert lines[0] == "| claim of the paper | shown in | paper's effect | small | paper scale |"
    for claim in edition.claims().values():
        (line,) = [line for line in lines if line.startswith(f"| {claim['statement']} |")]
        assert f"| {claim['published']} |" in line and line.endswith("| – |")
        assert claim["decided"]["effect"] == "–" or claim["verdict"] in line
    assert "have not been run" in table
    assert "[report.html](small/report.html)" in page([edition])


def test_the_readme_says_of_every_edition_how_many_claims_hold(edition: Edition) -> None:
    (line,) = verdicts([edition]).splitlines()
    assert line.startswith(f"- **{NAME}** (") and edition.summary() in line
    begin, end = COUNTS
    assert between(f"a\n{begin}old\n{end}\nb", COUNTS, "new\n") == f"a\n{begin}new\n{end}\nb"
    with pytest.raises(BadInput, match="<!-- claims × editions --> and .* are not there once"):
        between("a", MATRIX, "new\n")


def test_the_findings_name_every_judged_claim_and_the_numbers_behind_hm(edition: Edition) -> None:
    text = findings([edition])
    for claim in edition.claims().values():
        assert (f"- {claim['statement']} (" in text) == (claim["verdict"] != "described")
    assert "| CASTLE | " in text and "AUSUC" in text
    assert "### What the dictionary adds" in text
    assert "| method | S→S, 0 % | S→S, 25 % | S→S, 47 % | HM, 0 % |" in text
    mixed = text.partition("### Training images among the seen test images")[2]
    assert "| MC + kNN | " in mixed and "| CASTLE† | " not in mixed


def test_the_pages_are_those_of_the_committed_editions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    editions = [Edition(EDITIONS / name) for name in names()]
    if not editions:
        pytest.skip("no edition is committed yet")
    for file, text in pages(editions, Path("README.md").read_text()).items():
        assert file.read_text() == text, f"{file}: run `tools/edition pages`"


def test_committed_editions_stay_small() -> None:
    for folder in (ROOT / EDITIONS / name for name in names(ROOT / EDITIONS)):
        records = sum(file.stat().st_size for file in folder.glob("records.*"))
        assert records < 5_000_000 and (folder / "report.html").stat().st_size < 8_000_000, folder.name


def test_the_dictionary_is_worth_the_paired_difference_to_the_cell_without_one() -> None:
    whole, lacking, other = Cell("mini", "castle", 5), Cell("mini", "castle", 5, "ratio0"), Cell("mini", "acastle", 5)
    assert dictionary.pairs([whole, lacking, other]) == [(whole, lacking)]
    assert dictionary.pairs([Cell("office", "castle_minus", 1)])[0][0] == Cell("office", "castle", 1)
    noise = np.random.default_rng(0).normal(0, 20, 400)

    def sample(reading: Reading) -> Sample | None:
        values = 50 + noise + (3 if reading.cell == whole else 0)
        return Sample({seed: Replicate(values + seed, f"tasks {seed}") for seed in range(3)})

    found = dictionary.gains(whole, lacking, sample)
    assert [each and round(each.mean, 6) for each in found] == [3.0] * len(dictionary.COLUMNS)
    assert all(each and each.wide < 1e-6 for each in found), "paired: what the tasks share is no noise"
    assert {reading.measure for reading in dictionary.readings([lacking])} == set(dictionary.COLUMNS)
