"""`python -m stages paper`: render every table, figure and claim from the records, and the report around them."""

from pathlib import Path
from typing import Any

from repro import paths
from repro.report.facts import Benchmark
from repro.report.paper import Form, render_paper
from repro.report.templates import templates_named
from repro.results.provenance import WritingRun
from stages._experiment import Experiment, Run, bad_input_exits, prepare, run
from stages._grid import evaluation_stages
from stages._paper_facts import dataset_facts
from stages._params import read_params
from stages._tracking import recorded, runs_folder

ex = prepare(Experiment("paper"))


@ex.main
def paper(
    benchmark: dict[str, str],
    datasets: list[str],
    backbones: dict[str, str],
    form: Form,
    way: int,
    query: int,
    stages: dict[str, str],
    _run: Run,
) -> dict[str, Any]:
    """Render, and say what held, what is missing and where the PDF is."""
    with templates_named(paths.PAPER / "templates"):
        rendered = render_paper(
            paths.ALL_RESULTS,
            {name: dataset_facts(paths.dataset(name), title=name) for name in datasets},
            Benchmark(**benchmark, backbones=backbones),
            published_file=paths.PAPER / "published.yaml",
            templates=paths.PAPER / "templates",
            out=paths.PAPER,
            form=form,
            way=way,
            query=query,
            dvc_lock=paths.LOCK,
            reproduce=lambda cell: f"dvc repro {stages.get(cell, f'evaluate@{cell}')}",
            runs=writing_runs(runs_folder()),
        )
    figures = sorted((paths.PAPER / "figures").glob("*.png"))
    for file in [*(paths.PAPER / name for name in ("tables.tex", "claims.json", "report.html")), *figures]:
        _run.add_artifact(str(file), name=file.name)
    if rendered.missing:
        print(f"no records yet of {len(rendered.missing)} cells: {', '.join(rendered.missing)}")
    print(rendered.summary)
    print(rendered.pdf)
    return {"verdicts": rendered.verdicts, "missing": len(rendered.missing)}


def writing_runs(runs: Path) -> dict[str, WritingRun]:
    """The evaluation runs by the content hash of the records that they wrote; of equal records the latest."""
    return {
        run.result["records"]: WritingRun(run.name, run.commit, run.config)
        for run in recorded(runs, "evaluate")
        if "records" in run.result
    }


if __name__ == "__main__":
    with bad_input_exits():
        params = read_params(paths.PARAMS)
        first = next(iter(params.episodes.values()))
        config = {
            "benchmark": params.benchmark.model_dump(),
            "datasets": list(params.datasets),
            "backbones": {dataset: backbone.name for dataset, backbone in params.backbones.items()},
            "form": params.paper.form,
            "way": params.measuring.selection.way,
            "query": first.query,
            "stages": evaluation_stages(),
            "seed": params.seed,
        }
    run(ex, config, stage="paper", cell="all")
