"""The tables of SCALING.md: `costs.py` as Markdown."""

from collections.abc import Iterable, Iterator, Sequence

from repro.results.records import KEYS, MEASURES
from tools.benchmarks.costs import (
    CHECKPOINT_COPIES,
    DIM,
    FLOAT,
    IMAGES,
    SPEED,
    Costs,
    Training,
    backbone,
    planned,
    stored_rows,
)

MB, GB, HOUR = 1e6, 1e9, 3600


def tables() -> str:
    """All of them, a blank line between two."""
    settings = planned()
    costs = Costs(settings)
    every = (_units(costs), _datasets(costs), _trainings(costs), _stages(costs, len(settings)))
    return "\n\n".join("\n".join(table) for table in every)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"


def _units(costs: Costs) -> Iterator[str]:
    head = ("backbone", "weights", "GFLOP forward", "GFLOP in training", "kept for backward", "checkpoint")
    names = {(each.backbone.name, costs.sizes[each.dataset]) for each in costs.of_pretraining}
    rows = []
    for name, size in sorted(names):
        one = backbone(name, size)
        checkpoint = CHECKPOINT_COPIES * FLOAT * one.weights / MB
        operations = (f"{one.forward / 1e9:.2f}", f"{one.step / 1e9:.2f}")
        kept, weights = f"{one.kept / MB:.1f} MB", f"{one.weights / 1e6:.1f} M"
        rows.append((f"`{name}`, {size} px, an image", weights, *operations, kept, f"{checkpoint:.0f} MB"))
    yield from _table(head, rows)


def _datasets(costs: Costs) -> Iterator[str]:
    head = ("dataset", "images", "packed", "embedded per model", "models, at most", "all models")
    rows: list[tuple[object, ...]] = []
    packed_bytes = model_bytes = 0
    for name, roles in IMAGES.items():
        size, unit = costs.sizes[name], costs.backbone(name)
        packed, embedded = sum(roles) * size * size * 3, stored_rows(name) * DIM * FLOAT
        # A training may leave two: the weights with the best HM, and those with the best few-shot accuracy.
        of_pretraining, of_training = (
            sum(each.dataset == name for each in some) for some in (costs.of_pretraining, costs.of_training)
        )
        models = of_pretraining + 2 * of_training
        stored = models * (embedded + FLOAT * unit.weights)
        packed_bytes, model_bytes = packed_bytes + packed, model_bytes + stored
        sizes = (f"{packed / GB:.2f} GB", f"{embedded / GB:.2f} GB", models, f"{stored / GB:.1f} GB")
        rows.append((name, f"{sum(roles):,}", *sizes))
    total = sum(sum(roles) for roles in IMAGES.values())
    rows.append(("all", f"{total:,}", f"{packed_bytes / GB:.2f} GB", "", "", f"{model_bytes / GB:.1f} GB"))
    yield from _table(head, rows)


def _trainings(costs: Costs) -> Iterator[str]:
    kinds = {
        "pre-training": [one for one in costs.pretrainings() if one.steps],
        "meta-training": list(costs.meta_trainings()),
    }
    head = (
        "work",
        "trainings",
        "steps",
        "images a step",
        "kept, at most",
        "PFLOP in steps",
        "PFLOP embedding",
        "GPU hours",
    )
    groups = {
        f"{kind}, {dataset}": [one for one in trainings if one.dataset == dataset]
        for kind, trainings in kinds.items()
        for dataset in IMAGES
    }
    groups["all"] = [one for trainings in kinds.values() for one in trainings]
    yield from _table(head, ((name, *_totals(group)) for name, group in groups.items()))


def _totals(group: list[Training]) -> tuple[object, ...]:
    images = sorted({one.images for one in group})
    between = f"{images[0]}–{images[-1]}" if len(images) > 1 else f"{images[0]}"
    trained, embedded = sum(one.trained for one in group), sum(one.embedded for one in group)
    operations = (f"{trained / 1e15:,.0f}", f"{embedded / 1e15:,.0f}")
    steps = f"{sum(one.steps for one in group):,}"
    kept = f"{max(one.kept for one in group) / GB:.1f} GB"
    return len(group), steps, between, kept, *operations, f"{(trained + embedded) / SPEED / HOUR:.1f}"


def _stages(costs: Costs, planned_stages: int) -> Iterator[str]:
    stages, evaluations = planned_stages + 3 + 1, len(costs.of_evaluation)  # the experiment's three, and `plan` itself
    tasks = list(costs.measured_tasks())
    number, queries = sum(count for _, count in tasks), sum(30 * way * count for way, count in tasks)
    bytes_per_task = FLOAT * (len(MEASURES) + len(KEYS) - 1)  # the protocol's name takes next to nothing
    head = ("stages", "evaluations", "tasks measured", "queries scored", "record, a task", "records, at most")
    row = (stages, evaluations, f"{number:,}", f"{queries:,}", f"{bytes_per_task} B")
    yield from _table(head, [(*row, f"{2 * number * bytes_per_task / GB:.2f} GB")])  # GFSL and FSL rows
