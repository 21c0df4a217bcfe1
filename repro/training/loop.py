"""The one training loop: draw, embed, loss, step; it yields what each step gave and leaves showing it to the caller.

Every random draw of step n comes from (seed, purpose, n), torch's global generator included: it is seeded anew before
the backbone's and before the head's part of every step, so a step does not depend on how the run got there.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from repro.data.batches import Draws
from repro.data.loading import Draw
from repro.data.seeding import derive_seed
from repro.errors import BadInput, Diverged
from repro.models.weights import install
from repro.training.checkpoints import Best, Snapshot, read_checkpoint, write_checkpoint
from repro.training.distributed import World
from repro.training.embedding import Embedder
from repro.training.optim import Optimisation


class Learner(Protocol):
    """What is trained: a model, and its loss on an embedded draw."""

    @property
    def model(self) -> nn.Module: ...

    def groups(self) -> list[dict[str, Any]]:
        """Optimiser groups: `name`, `params`, `lr_scale`."""
        ...

    def training_mode(self) -> None:
        """Put every module into the mode it trains in."""
        ...

    def loss(self, embeddings_ND: Tensor, drawn: Any, step: int) -> Tensor:
        """The loss of a step's embeddings, in the order of the draw's rows."""
        ...


@dataclass(frozen=True)
class StepMetrics:
    """One step: its loss and learning rate, a validation where one was due, and the best one so far."""

    step: int
    loss: float
    lr: float
    validation: float | None
    best: float | None


class Training:
    """A run of `steps` steps. Iterating trains and yields `StepMetrics`; at the end the model has its best weights.

    `validate(model)` is asked before the first step, every `validate_every` steps and after the last, with the model in
    evaluation mode and without gradients, for one measure or more; of each, larger is better, and its best weights are
    kept. What training does not improve stays as it came (`best` of step 0). The first measure is the one that decides
    which weights the model ends with; without `validate` the last ones stay. `history` holds loss, lr and the first
    measure (NaN where none was due) of every step so far, also of those before a resume. Raises Diverged on a NaN or
    infinite loss.
    """

    def __init__(
        self,
        learner: Learner,
        draws: Draws,
        embedder: Embedder,
        optimisation: Optimisation,
        *,
        steps: int,
        seed: int,
        world: World,
        amp_scaler: torch.amp.GradScaler,
        validate: Callable[[Any], Mapping[str, float]] | None,
        validate_every: int,
        settings: Mapping[str, Any],
    ) -> None:
        if min(steps, validate_every) < 1:
            raise BadInput(f"steps={steps}, validate_every={validate_every}: expected at least 1 of both")
        self.learner, self.draws, self.embedder, self.optimisation = learner, draws, embedder, optimisation
        self.steps, self.seed, self.world, self.amp_scaler = steps, seed, world, amp_scaler
        self.validate, self.validate_every = validate, validate_every
        self.settings = {
            **settings,
            "steps": steps,
            "seed": seed,
            "validate_every": validate_every,
            "optimisation": asdict(optimisation),
        }
        self.optimiser = optimisation.optimiser(learner.model, learner.groups())
        self.step = 0
        self.bests: dict[str, Best] = {}
        self.best_weights: dict[str, dict[str, Tensor]] = {}
        self.history: dict[str, list[float]] = {"loss": [], "lr": [], "validation": []}

    def __iter__(self) -> Iterator[StepMetrics]:
        if self.step == 0:
            self._validation(0)
        self.learner.training_mode()
        for step, drawn, prepared in self.embedder.batches(self.draws, range(self.step + 1, self.steps + 1)):
            loss, lr = self._advance(step, drawn, prepared)
            validation = self._validation(step)
            self.step = step
            for name, value in (("loss", loss), ("lr", lr), ("validation", validation)):
                self.history[name].append(math.nan if value is None else value)
            yield StepMetrics(step, loss, lr, validation, self.best.value if self.best else None)
        for measure in list(self.bests)[:1]:
            self.install_best(measure)
        self.learner.model.eval()

    @property
    def best(self) -> Best | None:
        """The best validation so far by the measure that decides."""
        return next(iter(self.bests.values()), None)

    def install_best(self, measure: str) -> None:
        """Give the model the weights with which this measure was best."""
        install(self.learner.model, self.best_weights[measure], f"the weights of step {self.bests[measure].step}")

    def _advance(self, step: int, drawn: Draw, prepared: Tensor) -> tuple[float, float]:
        lr = self.optimisation.set_lr(self.optimiser, step, self.steps)
        torch.manual_seed(derive_seed(self.seed, "backbone", step, self.world.rank))
        embeddings_ND = self.embedder(prepared, len(drawn.rows_N), step)
        torch.manual_seed(derive_seed(self.seed, "head", step))
        loss = self.learner.loss(embeddings_ND, drawn, step)
        value = loss.item()
        if not math.isfinite(value):
            raise Diverged(f"the loss is {value} at step {step} (lr {lr:.3g}): training diverged; lower lr or set clip")
        self.optimiser.zero_grad()
        self.amp_scaler.scale(loss).backward()
        parameters = [parameter for group in self.optimiser.param_groups for parameter in group["params"]]
        self.world.average_gradients(parameters)
        if self.optimisation.clip:
            self.amp_scaler.unscale_(self.optimiser)
            nn.utils.clip_grad_norm_(parameters, self.optimisation.clip)
        self.amp_scaler.step(self.optimiser)
        self.amp_scaler.update()
        return value, lr

    def _validation(self, step: int) -> float | None:
        if self.validate is None or (step % self.validate_every and step != self.steps):
            return None
        model = self.learner.model.eval()
        with torch.no_grad():
            found = {one: self.world.agree(float(value)) for one, value in self.validate(model).items()}
        self.learner.training_mode()
        better = [one for one, value in found.items() if one not in self.bests or value > self.bests[one].value]
        if better:
            weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            self.bests |= {one: Best(found[one], step) for one in better}
            self.best_weights |= dict.fromkeys(better, weights)
        return next(iter(found.values()))

    def snapshot(self) -> Snapshot:
        """All that is needed to go on from here."""
        momentum = {
            name: self.optimiser.state[parameter]["momentum_buffer"]
            for name, parameter in self.learner.model.named_parameters()
            if self.optimiser.state.get(parameter, {}).get("momentum_buffer") is not None
        }
        return Snapshot(
            step=self.step,
            best=dict(self.bests),
            loss_scale=self.amp_scaler.state_dict(),
            weights=self.learner.model.state_dict(),
            best_weights={
                f"{measure}/{name}": tensor
                for measure, weights in self.best_weights.items()
                for name, tensor in weights.items()
            },
            momentum=momentum,
            history={name: torch.tensor(values, dtype=torch.float64) for name, values in self.history.items()},
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot; raises BadInput where it does not fit the model."""
        install(self.learner.model, snapshot.weights, f"the checkpoint of step {snapshot.step}")
        parameters = dict(self.learner.model.named_parameters())
        for name, buffer in snapshot.momentum.items():
            self.optimiser.state[parameters[name]]["momentum_buffer"] = torch.empty_like(parameters[name]).copy_(buffer)
        self.amp_scaler.load_state_dict(snapshot.loss_scale)
        self.step, self.bests = snapshot.step, dict(snapshot.best)
        self.best_weights = {measure: {} for measure in self.bests}
        for place, tensor in snapshot.best_weights.items():
            measure, _, name = place.partition("/")
            self.best_weights[measure][name] = tensor.to(self.world.device)
        self.history = {name: values.tolist() for name, values in snapshot.history.items()}


def run(
    training: Training, folder: Path, *, checkpoint_every: int, inputs: Mapping[str, Any] | None = None
) -> Iterator[StepMetrics]:
    """Resume from `folder` if it holds a checkpoint (at once), then train to the end, writing one at intervals.

    `inputs` names what else the result depends on (dataset hash, method options); resuming with others is refused.
    The caller iterates, shows, logs and stores the trained model inside of `own_checkpoints(folder, …)`.
    """
    if checkpoint_every < 1:
        raise BadInput(f"checkpoint_every={checkpoint_every}: expected at least 1")
    fingerprint = {**training.settings, "inputs": inputs or {}}
    if (snapshot := read_checkpoint(folder, fingerprint)) is not None:
        training.restore(snapshot)
    return _checkpointed(training, folder, checkpoint_every, fingerprint)


def _checkpointed(
    training: Training, folder: Path, every: int, fingerprint: Mapping[str, Any]
) -> Iterator[StepMetrics]:
    for metrics in training:
        if metrics.step % every == 0 and training.world.rank == 0:
            write_checkpoint(folder, training.snapshot(), fingerprint)
        yield metrics
