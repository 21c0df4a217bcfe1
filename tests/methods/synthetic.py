"""Gaussian classes in feature space, for tests that need embeddings and no images (the backbone is the identity)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from repro.data.seeding import generator
from repro.methods.base import BatchSpec, EmbeddedBatch, Method


@dataclass(frozen=True)
class World:
    """Class centres (seen first) around which embeddings scatter."""

    centres_CD: Tensor
    seen: int
    noise: float

    @classmethod
    def make(cls, seen: int = 8, unseen: int = 6, dim: int = 5, noise: float = 0.5) -> "World":
        centres = 2 * torch.randn(seen + unseen, dim, generator=generator(0, "centres"))
        return cls(centres, seen, noise)

    @property
    def dim(self) -> int:
        return self.centres_CD.shape[1]

    def images(self, labels: Tensor, seed: int) -> Tensor:
        """One embedding per label (…×D)."""
        noise = torch.randn(*labels.shape, self.dim, generator=generator(seed, "images"))
        return self.centres_CD[labels] + self.noise * noise

    def tasks(self, tasks: int = 4, ways: int = 3, shots: int = 2, queries: int = 7, seed: int = 0):
        """Support T×W×K×D of unseen classes, queries T×Q×D of all classes, and the tail labels T×W."""
        random = generator(seed, "tasks")
        unseen = len(self.centres_CD) - self.seen
        tail_TW = self.seen + torch.rand(tasks, unseen, generator=random).argsort(dim=1)[:, :ways]
        labels_TQ = torch.randint(len(self.centres_CD), (tasks, queries), generator=random)
        support_TWKD = self.images(tail_TW.unsqueeze(2).expand(-1, -1, shots), seed + 1)
        return support_TWKD, self.images(labels_TQ, seed + 2), tail_TW

    def batch(self, spec: BatchSpec, seed: int) -> EmbeddedBatch:
        """What the training loop would hand over for this specification."""
        random = generator(seed, "batch")
        labels_TC = torch.rand(spec.tasks, self.seen, generator=random).argsort(dim=1)[:, : spec.classes]
        free_B = torch.randint(self.seen, (spec.free,), generator=random)
        return EmbeddedBatch(
            support_TCKD=self.images(labels_TC.unsqueeze(2).expand(-1, -1, spec.shot), seed + 1),
            query_TCQD=self.images(labels_TC.unsqueeze(2).expand(-1, -1, spec.queries), seed + 2),
            labels_TC=labels_TC,
            free_BD=self.images(free_B, seed + 3),
            free_labels_B=free_B,
        )

    def exemplars(self, per_class: int) -> Tensor:
        """Remembered training images (S×M×D)."""
        return self.images(torch.arange(self.seen).unsqueeze(1).expand(-1, per_class), 99)

    def ready(self, method: Method) -> Method:
        """The method in evaluation mode, with a fair seen classifier and its memory filled."""
        method.load_pretrained(self.centres_CD[: self.seen] * 0.5)
        if method.remembers:
            method.remember(self.exemplars(method.remembers))
        return method.eval()


class ScaledIdentity(nn.Module):
    """A backbone with one parameter per feature that the embeddings pass through."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gain_D = nn.Parameter(torch.ones(dim))

    def forward(self, images_ND: Tensor) -> Tensor:
        return images_ND * self.gain_D


def embed(batch: EmbeddedBatch, backbone: nn.Module) -> EmbeddedBatch:
    """Pass all images of a batch through the backbone."""
    return EmbeddedBatch(
        backbone(batch.support_TCKD), backbone(batch.query_TCQD), batch.labels_TC, backbone(batch.free_BD),
        batch.free_labels_B,
    )  # fmt: skip


def train(method: Method, world: World, *, shot: int = 2, steps: int = 30, lr: float = 0.05) -> tuple[float, float]:
    """Take SGD steps and give the loss on one held-out batch before and after."""
    spec = method.batch_spec(shot)
    assert spec is not None
    held_out, random = world.batch(spec, 10_000), generator(0, "training")

    def held_out_loss() -> float:
        method.eval()
        with torch.no_grad():
            return float(method.loss(embed(held_out, method.backbone), random))

    groups = [{"params": group["params"], "lr": lr * group["lr_scale"]} for group in method.parameter_groups()]
    optimiser = torch.optim.SGD(groups, momentum=0.9)
    before = held_out_loss()
    for step in range(steps):
        method.train()
        optimiser.zero_grad()
        method.loss(embed(world.batch(spec, step), method.backbone), random).backward()
        optimiser.step()
    return before, held_out_loss()
