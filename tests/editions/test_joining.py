"""Replicates that were run apart, joined into one edition."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from repro.editions.details import read_details, write_details
from repro.editions.edition import EDITIONS, Edition
from repro.editions.estimates import joined
from repro.editions.groups import FACTS
from repro.errors import BadInput
from repro.files import seal
from repro.results.intervals import Values, estimate
from stages.settings import scales
from stages.settings.params import read_params
from tests.editions.conftest import NAME
from tools.editions.bundling import write_bundle
from tools.editions.command import perform
from tools.editions.pages import page
from tools.editions.restoring import restore

pytestmark = pytest.mark.timeout(1200)
OTHER = "other"


@pytest.mark.parametrize("same_classes", [False, True])
def test_means_of_parts_give_what_all_values_at_once_give(same_classes: bool) -> None:
    draw = np.random.default_rng(0)
    seeds = [[Values(draw.normal(50 + shift, 20, 300))] for shift in draw.normal(0, 2, 5)]
    whole = estimate(seeds, same_classes)
    found = joined([estimate(part, same_classes) for part in (seeds[:1], seeds[1:3], seeds[3:])], same_classes)
    assert (found.tasks, found.seeds) == (whole.tasks, whole.seeds)
    np.testing.assert_allclose([found.mean, found.ci, found.wide], [whole.mean, whole.ci, whole.wide])
    assert found.error and whole.error and found.error.covers == whole.error.covers
    assert joined([estimate(seeds[:1]), estimate(seeds[1:2])], same_classes).error is None, "two say nothing of a third"


def as_seed(edition: Path, seed: int, other: Path) -> None:
    """Write an edition of one seed as if that had been another."""
    shutil.copytree(edition, other)
    params = other / "params.yaml"
    params.write_text(scales.overlaid(params.read_text(), {"seeds": [seed]}))
    about = json.loads((other / "edition.json").read_bytes())
    (other / "edition.json").write_text(json.dumps(about | {"name": other.name, "seeds": [seed]}))
    facts = json.loads(gzip.decompress((other / FACTS).read_bytes()))
    facts["groups"] = [[cell, seed, *rest] for cell, _, *rest in facts["groups"]]
    for kind in ("cells", "curves", "metrics"):
        facts[kind] = {f"{key.rpartition('/')[0]}/{seed}": value for key, value in facts[kind].items()}
    (other / FACTS).write_bytes(gzip.compress(json.dumps(facts).encode()))
    details = read_details(edition)
    trained = {cell: tuple(replace(each, seed=seed) for each in of) for cell, of in details.trainings.items()}
    write_details(other, replace(details, datasets=(), trainings=trained))
    provenance = json.loads((other / "provenance.json").read_bytes())
    provenance["cells"] = {cell: {str(seed): of["0"]} for cell, of in provenance["cells"].items()}
    (other / "provenance.json").write_text(json.dumps(provenance))
    seal(other)


def test_joined_editions_are_one_of_all_their_seeds(
    edition: Edition, clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    as_seed(edition.folder, 3, EDITIONS / OTHER)
    assert perform("join", "both", None, [OTHER, NAME]) == 0
    assert "both: seeds 0, 3." in capsys.readouterr().out
    both = Edition(EDITIONS / "both")
    assert both.about.seeds == (0, 3) and both.about.joined.keys() == {"0", "3"}
    assert read_params(both.folder / "params.yaml").seeds == (0, 3)
    assert {f"dvc-{seed}.lock" for seed in (0, 3)} <= {file.name for file in both.folder.glob("*.lock")}
    assert perform("check", "both", None) == 0, "it renders every byte again from its own records"
    assert "| 0; 3 (run apart) |" in page([both])
    first, details = read_details(edition.folder), read_details(both.folder)
    assert details.datasets == first.datasets
    shown = {view.name for view in first.datasets}
    assert shown == {"heterogeneous", "mini"}, "those of the small grid"
    assert details.trainings.keys() == first.trainings.keys() and first.trainings
    assert {tuple(course.seed for course in of) for of in details.trainings.values()} == {(0, 3)}
    report = (both.folder / "report.html").read_text()
    assert all(f'id="hardest-{name}"' in report for name in shown) and 'id="training-cell"' in report
    with pytest.raises(BadInput, match="the seeds 0; 3 of both were run apart, so no workspace has all models"):
        write_bundle(both, clone / "both.zip", models=True)
    assert write_bundle(both, clone / "both.zip", models=False) == 0
    shutil.rmtree(both.folder)
    params = (clone / "params.yaml").read_bytes()
    assert restore(clone / "both.zip").name == "both" and (clone / "params.yaml").read_bytes() == params
    assert perform("check", "both", None) == 0, "the bundle brought it back whole"
    one, two = (json.loads((each.folder / "provenance.json").read_bytes())["numbers"] for each in (edition, both))
    assert [each["place"] for each in one] == [each["place"] for each in two] != []
    for before, after in zip(one, two, strict=True):
        assert after["mean"] == pytest.approx(before["mean"]) and after["tasks"] == 2 * before["tasks"]
        assert after["interval"] == pytest.approx(before["interval"] / 2**0.5), "over twice as many tasks"


def test_what_is_no_replicate_of_the_same_run_is_refused(edition: Edition, clone: Path) -> None:
    with pytest.raises(BadInput, match="small and small both have seed 0; only replicates of one run"):
        perform("join", "both", None, [NAME, NAME])
    with pytest.raises(BadInput, match="small is the only edition named, expected two or more"):
        perform("join", "both", None, [NAME])
    as_seed(edition.folder, 3, EDITIONS / OTHER)
    params = EDITIONS / OTHER / "params.yaml"
    params.write_text(params.read_text().replace("threads: 1", "threads: 2", 1))
    seal(EDITIONS / OTHER)
    with pytest.raises(BadInput, match=r"another params.yaml than small \(threads: 1 → 2\)"):
        perform("join", "both", None, [NAME, OTHER])
    assert not (EDITIONS / "both").exists()
