"""One rendered paper from synthetic records, shared by the tests that only look at it."""

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repro.methods.registry import method_class, method_names
from repro.report.facts import Benchmark, DatasetFacts, Methods
from repro.report.paper import Form, Rendered, render_paper
from repro.results.origins import ORIGIN
from tests.report.synthetic import SEEN, UNSEEN, noisy, write_results

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "paper"
PUBLISHED = PAPER / "published.yaml"
MISSING = "mini-l2ml-1shot"
OF_BEFORE = "mini-icarl-5shot"  # evaluated before origins were written
IMAGES = {"train": 1000, "val": 200, "test": 300, "seen_val": 40, "seen_test": 50}


def facts_of(name: str) -> DatasetFacts:
    """Facts of one synthetic dataset; the multi-domain ones bring images."""
    domains = {"heterogeneous": ("bird", "dog"), "office": ("clipart", "product", "real")}.get(name, ())
    images_NHWC = np.arange(4 * 12 * 12, dtype=np.uint8).reshape(4, 12, 12, 1)
    return DatasetFacts(name, SEEN[name], 16, UNSEEN[name], IMAGES, {domain: images_NHWC for domain in domains})


DATASETS = {name: facts_of(name) for name in SEEN}
BENCHMARK = Benchmark("glyphs", "laptop", "Characters, not photographs.", {"mini": "castle_convnet4_small"})


CARDS = {name: method_class(name).own_card() for name in method_names()}
KNOWN = Methods(CARDS)


def render(
    results: Path, out: Path, form: Form = "beside", main: bool = False, published: Path = PUBLISHED, **options: Any
) -> Rendered:
    """Render into `out`; the PDF only where `main` is asked for. `options` stand instead of what is usual."""
    out.mkdir(parents=True, exist_ok=True)
    if main:
        shutil.copy(PAPER / "main.tex", out)
    return render_paper(
        results,
        options.pop("datasets", DATASETS),
        options.pop("cards", CARDS),
        BENCHMARK,
        published_file=published,
        templates=PAPER / "templates",
        out=out,
        form=form,
        way=5,
        query=15,
        reproduce="dvc repro evaluate@{}".format,
        **options,
    )


_opened: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None and isinstance(arguments[0], str | Path):
        _opened.append(str(arguments[0]))


@pytest.fixture
def opened() -> Iterator[Callable[[], list[Path]]]:
    """Notes every file that Python code opens while the test runs."""
    global _opened  # noqa: PLW0603 (a hook of the interpreter cannot be taken away again)
    _opened = noted = []
    if not getattr(sys, "_notes_opened_files", False):
        sys.addaudithook(_note)
        sys._notes_opened_files = True  # type: ignore[attr-defined]
    yield lambda: [Path(name).resolve() for name in noted]
    _opened = None


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
    (results / OF_BEFORE / "0" / ORIGIN).unlink()
    return Paper(results, out, render(results, out, main=True))
