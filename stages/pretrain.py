"""`python -m stages pretrain NAME`: fit a backbone and its many-shot classifier to the seen classes of a dataset."""

import sys
from typing import Any

from repro import paths
from repro.data.dataset import Dataset, open_dataset
from repro.data.episodes import read_tasks
from repro.data.loading import ImageStore
from repro.files import sha256
from repro.models.pretrained import Pretrained
from repro.training.checkpoints import clear_checkpoints
from repro.training.device import Acceleration
from repro.training.distributed import World, joined
from repro.training.loop import Training
from repro.training.pretrain import pretrain
from repro.training.prototypes import prototype_accuracy
from stages._configs import pretraining_config
from stages._experiment import Experiment, Run, bad_input_exits, prepare, run
from stages._models import Card, build_pretrained, write_model
from stages._params import Machine, PretrainedParams, named, read_params
from stages._training import augmentation_from, optimisation_from, train_shown, write_curve

ex = prepare(Experiment("pretrain"))
MEASURE = "val_prototype_accuracy"


@ex.main
def main(
    name: str,
    dataset: str,
    selection: str,
    pretrained: dict[str, Any],
    precision: dict[str, Any],
    machine: dict[str, Any],
    seed: int,
    _run: Run,
) -> dict[str, float]:
    """Train, keep the epoch with the best nearest-prototype accuracy, and embed every image once."""
    data, params, computer = open_dataset(paths.dataset(dataset)), PretrainedParams(**pretrained), Machine(**machine)
    card = Card(
        dataset=dataset,
        backbone=params.backbone.name,
        backbone_options=params.backbone.options,
        channels=data.image_shape[2],
        seen_classes=data.seen_classes,
        classifier=params.classifier,
        classifier_options=params.classifier_options,
    )
    model = build_pretrained(card, seed)
    with joined(computer.device) as world:
        result = {}
        if params.epochs:
            training = _training(model, data, selection, params, Acceleration(**precision), world, seed)
            settings = {"pretrained": pretrained, "dataset": sha256(paths.dataset(dataset) / "dataset.json")}
            every = computer.checkpoint_every
            train_shown(training, name, MEASURE, settings=settings, checkpoint_every=every, log=_run)
            write_curve(paths.pretrained(name) / "curve.csv", training, MEASURE)
            _run.add_artifact(str(paths.pretrained(name) / "curve.csv"), name="curve.csv")
            result = {MEASURE: training.best.value} if training.best else {}
        if world.rank == 0:
            write_model(paths.pretrained(name), model, model.backbone, card, data, world.device, seed)
            clear_checkpoints(paths.checkpoints(name))
    return result


def _training(
    model: Pretrained,
    data: Dataset,
    selection: str,
    params: PretrainedParams,
    acceleration: Acceleration,
    world: World,
    seed: int,
) -> Training:
    tasks = read_tasks(paths.episodes(params.dataset) / f"{selection}.safetensors")
    store = ImageStore(data.images_NHWC, world.device)
    return pretrain(
        model,
        data,
        optimisation_from(params.optimisation),
        epochs=params.epochs,
        batch=params.batch,
        seed=seed,
        validate=lambda one: prototype_accuracy(one.backbone, store, tasks.support_TWK, tasks.query_TWQ),
        label_smoothing=params.label_smoothing,
        augmentation=augmentation_from(params.augmentation),
        acceleration=acceleration,
        world=world,
    )


if __name__ == "__main__":
    with bad_input_exits():
        params = read_params(paths.PARAMS)
        name = named("pretrained", sys.argv, params.pretrained)
        config = pretraining_config(params, name)
    run(ex, config, stage="pretrain", cell=name)
