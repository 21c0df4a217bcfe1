"""`python -m stages paper`: render every table, figure and claim from the records, and the report around them."""

import shutil
from dataclasses import asdict
from typing import Any, cast

from repro import paths
from repro.data.dataset import open_dataset
from repro.data.summary import summarise_dataset
from repro.files import whole_files
from repro.methods.registry import method_class
from repro.report.facts import Benchmark, DatasetFacts
from repro.report.needs import shown_datasets
from repro.report.paper import Form, render_paper
from repro.report.templates import template_errors_as_bad_input
from repro.results.contents import StoredContents
from repro.results.tuning import read_tuning
from stages.settings.files import read_settings
from stages.settings.kinds import PaperSettings
from stages.tracking import Log, bad_input_exits, record


def paper(settings: PaperSettings, log: Log) -> dict[str, Any]:
    """Render, and say what held, what is missing and where the PDF is; datasets look as the first seed drew them."""
    seed = settings.seeds[0]
    shown = [name for name in shown_datasets() if name in settings.datasets]
    main, pdf = paths.PAPER / "main.tex", paths.PAPER / "main.pdf"
    with template_errors_as_bad_input(paths.PAPER / "templates"), whole_files(paths.PAPER) as draft:
        if main.is_file():
            shutil.copy(main, draft)
        rendered = render_paper(
            paths.ALL_RESULTS,
            {name: DatasetFacts(name, **vars(summarise_dataset(paths.dataset(name, seed)))) for name in shown},
            {name: method_class(name).own_card() for name in settings.methods},
            Benchmark(**asdict(settings.benchmark), backbones=settings.backbones),
            published_file=paths.PAPER / "published.yaml",
            templates=paths.PAPER / "templates",
            out=draft,
            form=cast(Form, settings.form),
            rows=settings.rows,
            way=settings.way,
            query=settings.query,
            reproduce=lambda cell: f"dvc repro {settings.stages.get(cell, f'evaluate@{cell}')}",
            contents=StoredContents(*(paths.episodes(name, "test") for name in shown)),
            same_classes=share_classes(shown, settings.seeds),
            trained=[name for name in settings.methods if method_class(name).default_training is not None],
            tuning=read_tuning(paths.TUNED),
        )
        if not (draft / pdf.name).exists():
            pdf.unlink(missing_ok=True)  # it shows what was rendered before
        (draft / main.name).unlink(missing_ok=True)
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
