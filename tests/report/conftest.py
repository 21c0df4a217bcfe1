"""One rendered paper from synthetic records, shared by the tests that only look at it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from repro.files import sha256
from repro.report.facts import Benchmark, DatasetFacts, DomainSamples
from repro.report.paper import Form, Rendered, render_paper
from repro.results.provenance import WritingRun
from tests.report.synthetic import SEEN, UNSEEN, noisy, write_results

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "paper"
MISSING = "mini-l2ml-1shot"
IMAGES = {"train": 1000, "val": 200, "test": 300, "seen_val": 40, "seen_test": 50}


def facts_of(name: str) -> DatasetFacts:
    """Facts of one synthetic dataset; the multi-domain ones bring images."""
    domains = {"heterogeneous": ("bird", "dog"), "office": ("clipart", "product", "real")}.get(name, ())
    images_NHWC = np.arange(4 * 12 * 12, dtype=np.uint8).reshape(4, 12, 12, 1)
    samples = tuple(DomainSamples(domain, images_NHWC) for domain in domains)
    return DatasetFacts(name, SEEN[name], 16, UNSEEN[name], IMAGES, samples)


DATASETS = {name: facts_of(name) for name in SEEN}
BENCHMARK = Benchmark("glyphs", "laptop", "Characters, not photographs.", {"mini": "castle_convnet4_small"})


def render(results: Path, out: Path, form: Form = "beside", main: bool = False) -> Rendered:
    """Render into `out`; the PDF only where `main` is asked for."""
    out.mkdir(parents=True, exist_ok=True)
    if main:
        shutil.copy(PAPER / "main.tex", out)
    return render_paper(
        results,
        DATASETS,
        BENCHMARK,
        published_file=PAPER / "published.yaml",
        templates=PAPER / "templates",
        out=out,
        form=form,
        way=5,
        query=15,
        dvc_lock=results.parent / "dvc.lock",
        runs={sha256(file): WritingRun("17", "abc1234", {}) for file in results.glob("*/tasks.parquet")},
        reproduce="dvc repro evaluate@{}".format,
    )


@dataclass(frozen=True)
class Paper:
    """A rendered paper: where its records are, where it was written, and what the renderer said."""

    results: Path
    out: Path
    rendered: Rendered


@pytest.fixture(scope="session")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Paper:
    """Every cell but one, rendered beside the published numbers, with the PDF where TeX is installed."""
    folder = tmp_path_factory.mktemp("paper")
    results, out = folder / "results", folder / "out"
    write_results(results, noisy(), skip=lambda cell: cell.name == MISSING)
    hashes = f"outs:\n    - path: {results}/mini-castle-1shot\n      md5: 0123abcd.dir\n"
    (folder / "dvc.lock").write_text(f"schema: '2.0'\nstages:\n  evaluate@mini-castle-1shot:\n    {hashes}")
    return Paper(results, out, render(results, out, main=True))
