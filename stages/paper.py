"""`python -m stages paper`: render every table, figure and claim from the records, and the report around them."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from repro import paths
from repro.cards import MethodCard
from repro.data.dataset import open_dataset
from repro.data.summary import summarise_dataset
from repro.files import whole_files
from repro.methods.registry import method_class
from repro.report.details import Details
from repro.report.facts import Benchmark, DatasetFacts
from repro.report.needs import shown_datasets
from repro.report.paper import Form, Rendered, render_paper
from repro.report.templates import template_errors_as_bad_input
from repro.results.contents import StoredContents, TaskContents
from repro.results.tuning import read_tunings
from stages.settings.files import read_settings
from stages.settings.kinds import PaperSettings
from stages.tracking import Log, bad_input_exits, record


def paper(settings: PaperSettings, log: Log) -> dict[str, Any]:
    """Render, and say what held, what is missing and where the PDF is; datasets look as the first seed drew them."""
    seed, shown = settings.seeds[0], described(settings)
    facts = {name: DatasetFacts(name, **vars(summarise_dataset(paths.dataset(name, seed)))) for name in shown}
    contents = StoredContents(*(paths.episodes(name, "test") for name in shown))
    rendered = render(settings, facts, contents, share_classes(shown, settings.seeds))
    figures = sorted((paths.PAPER / "figures").glob("*.png"))
    for file in [*(paths.PAPER / name for name in ("tables.tex", "claims.json", "report.html")), *figures]:
        log.add_artifact(str(file), name=file.name)
    if rendered.missing:
        print(f"no records yet of {len(rendered.missing)} cells: {', '.join(rendered.missing)}")
    for warning in rendered.warnings:
        print(f"warning: {warning}")
    print(rendered.summary)
    print(rendered.pdf)
    return {"verdicts": rendered.verdicts, "missing": len(rendered.missing)}


def described(settings: PaperSettings) -> list[str]:
    """The datasets that the paper shows."""
    return [name for name in shown_datasets() if name in settings.datasets]


def render(
    settings: PaperSettings,
    datasets: Mapping[str, DatasetFacts],
    contents: Callable[[str], TaskContents | None],
    same_classes: bool,
    source: Path = paths.PAPER,
    details: Details | None = None,
) -> Rendered:
    """Write the paper from the records below the working directory; all of it is replaced, or nothing.

    `source` has its templates, published numbers and tuning. `details` are those that an edition kept.
    """
    main, pdf = paths.PAPER / "main.tex", paths.PAPER / "main.pdf"
    with template_errors_as_bad_input(source / "templates"), whole_files(paths.PAPER) as draft:
        if main.is_file():
            shutil.copy(main, draft)
        rendered = render_paper(
            paths.ALL_RESULTS,
            datasets,
            cards(settings),
            Benchmark(**asdict(settings.benchmark), backbones=settings.backbones),
            published_file=source / "published.yaml",
            templates=source / "templates",
            out=draft,
            form=cast(Form, settings.form),
            rows=settings.rows,
            way=settings.way,
            query=settings.query,
            reproduce=lambda cell: f"dvc repro {settings.stages[cell]}" if cell in settings.stages else "",
            contents=contents,
            same_classes=same_classes,
            trained=[name for name in settings.methods if method_class(name).default_training is not None],
            tuning=read_tunings(source / paths.TUNED.name).of(settings.benchmark.name),
            details=details,
        )
        if not (draft / pdf.name).exists():
            pdf.unlink(missing_ok=True)  # it shows what was rendered before
        (draft / main.name).unlink(missing_ok=True)
    return rendered


def cards(settings: PaperSettings) -> dict[str, MethodCard]:
    """What every method says of itself."""
    return {name: method_class(name).own_card() for name in settings.methods}


def share_classes(datasets: list[str], seeds: tuple[int, ...]) -> bool:
    """Whether seeds have the same unseen classes somewhere, as on given data whose splits are fixed."""

    def unseen(name: str, seed: int) -> frozenset[str]:
        classes = open_dataset(paths.dataset(name, seed)).header.classes
        return frozenset(info.name for info in classes if info.split == "test")

    return any(len({unseen(name, seed) for seed in seeds}) < len(seeds) for name in datasets)


if __name__ == "__main__":
    with bad_input_exits():
        settings = read_settings(PaperSettings, ["paper"])
    record(paper, settings, stage="paper", cell="all")
