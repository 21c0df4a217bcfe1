"""`python -m stages pretrain NAME [--seed N]`: fit a backbone and its many-shot classifier."""

import sys
from dataclasses import asdict, dataclass, replace
from typing import Any

from repro import paths
from repro.data.dataset import Dataset, open_dataset
from repro.data.episodes import Tasks, read_tasks
from repro.data.loading import ImageStore
from repro.files import SEAL, sha256, whole_folder
from repro.models import require_room
from repro.models.device import use_cpu
from repro.models.pretrained import Pretrained
from repro.trained.folders import WEIGHTS, Card, build_pretrained, write_model
from repro.training.checkpoints import own_checkpoints
from repro.training.distributed import World, process_group
from repro.training.loop import Training
from repro.training.pretrain import pretrain as prepare_pretraining
from repro.training.prototypes import prototype_accuracy
from stages.origins import write_origin
from stages.settings.files import read_settings
from stages.settings.kinds import PretrainSettings
from stages.shown import attach_curve, said, train_shown
from stages.tracking import Log, bad_input_exits, of_seed, record

MEASURE = "val_prototype_accuracy"


@dataclass(frozen=True)
class Prepared:
    """A backbone with its classifier, ready to be trained; `inputs` is what the result depends on besides the loop."""

    card: Card
    model: Pretrained
    data: Dataset
    tasks: Tasks
    training: Training
    inputs: dict[str, Any]


def pretrain(settings: PretrainSettings, log: Log) -> dict[str, Any]:
    """Train unless `random`, keep the epoch with the best nearest-prototype accuracy, and embed every image once."""
    use_cpu(settings.threads)
    checkpoints, result = paths.checkpoints(settings.name, settings.seed), dict[str, Any]()
    with process_group(settings.machine.device) as world, own_checkpoints(checkpoints, world):
        ready = prepare(settings, world)
        card, training = ready.card, ready.training
        if settings.random:
            left_out = {"steps": training.steps, "optimisation": settings.pretraining.own_values()}
            card = replace(card, left_out=left_out)
        else:
            result = train_shown(
                training,
                settings.name,
                MEASURE,
                checkpoints,
                inputs=ready.inputs,
                checkpoint_every=settings.machine.checkpoint_every,
                log=log,
            )
        if world.rank == 0:
            with whole_folder(paths.pretrained(settings.name, settings.seed)) as folder:
                if not settings.random:
                    attach_curve(folder / "curve.csv", training, MEASURE, log)
                write_model(folder, ready.model, card, ready.data, world.device, settings.seed)
                result |= write_origin(folder, "pretrain", settings.name, settings, sha256(folder / WEIGHTS))
            print(said(settings.name, None if settings.random else training, "accuracy of nearest prototypes"))
    return result


def prepare(settings: PretrainSettings, world: World) -> Prepared:
    """The model with initial weights, and its pre-training ready to run."""
    place = paths.dataset(settings.dataset, settings.seed)
    data = open_dataset(place)
    tasks = read_tasks(paths.tasks(settings.dataset, "val", settings.way, settings.shot, settings.seed))
    card = Card(
        dataset=settings.dataset,
        backbone=settings.backbone.name,
        backbone_options=settings.backbone.options,
        channels=data.image_shape[2],
        seen_classes=data.seen_classes,
        classifier=settings.classifier.name,
        classifier_options=settings.classifier.options,
    )
    model = build_pretrained(card, settings.seed)
    require_room(model.backbone, settings.backbone.name, data.image_shape, f"datasets.{settings.dataset}.size")
    store = ImageStore(data.images_NHWC, world.device)
    training = prepare_pretraining(
        model,
        data,
        settings.pretraining,
        seed=settings.seed,
        validate=lambda one: {MEASURE: prototype_accuracy(one.backbone, store, tasks.support_TWK, tasks.query_TWQ)},
        acceleration=settings.precision,
        world=world,
    )
    inputs = {"card": asdict(card), "dataset": sha256(place / SEAL)}
    return Prepared(card, model, data, tasks, training, inputs)


if __name__ == "__main__":
    with bad_input_exits():
        settings = read_settings(PretrainSettings, sys.argv[1:])
    record(pretrain, settings, stage="pretrain", cell=of_seed(settings.name, settings.seed))
