"""Are the numbers of a training right on this machine? Precision, determinism, equality of several processes.

Each is checked on made-up images with the pipeline's own training code: mixed precision against float32 on one batch,
the same steps twice, and two processes against one. Two GPUs use NCCL; elsewhere two CPU processes use gloo.
"""

import multiprocessing
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro import paths
from repro.data.dataset import SPLIT_OF_ROLE, ClassInfo, Dataset, Header
from repro.data.loading import normalise
from repro.data.pixels import PixelsInMemory
from repro.models import create_backbone
from repro.models.device import PLAIN, Acceleration, make_deterministic, pick_device
from repro.models.pretrained import Pretrained
from repro.training.distributed import ALONE, World, process_group
from repro.training.loop import Training
from repro.training.optim import Schedule
from repro.training.pretrain import Pretraining, pretrain
from stages.settings.grid import read_grid
from stages.settings.params import Named, read_params
from tools.rehearsing.checks import device_of
from tools.rehearsing.work import Work

LOSS_BOUND, DIRECTION_BOUND = 0.02, 0.95  # relative difference of the loss; cosine of the two gradients
PARALLEL_BOUND = 1e-3  # relative difference of a step's loss: sums in another order
SEEN, BATCH, STEPS, PROCESSES = 8, 16, 4, 2
SMALL = Named("castle_convnet4_small")  # draws no random numbers of its own, so processes agree in every step


@dataclass(frozen=True)
class Check:
    """One row: what was compared, what was found, what is allowed."""

    name: str
    found: str
    bound: str
    holds: bool


def check_numerics(root: Path) -> int:
    """Check what params.yaml asks for on its device, tell, and give the exit code. Raises BadInput."""
    work = Work(read_params(root / paths.PARAMS), read_grid(root), root)
    device = device_of(work)
    if device.type == "cuda":
        make_deterministic()
    torch.set_num_threads(work.params.threads)
    holds = True
    for check in all_checks(work, device):
        verdict = "holds" if check.holds else "FAILS"
        print(f"{verdict}  {check.name}: {check.found}, allowed {check.bound}", flush=True)
        holds = holds and check.holds
    return int(not holds)


def all_checks(work: Work, device: torch.device) -> Iterator[Check]:
    """Every backbone in mixed precision and twice; then several processes."""
    asked = work.params.precision.amp
    formats = [asked] if asked != "none" else ["bf16", "fp16"] if device.type == "cuda" else ["bf16"]
    done: set[tuple[str, int]] = set()
    for name, chosen in work.params.datasets.items():
        backbone = work.resolver.backbone(name)
        if (backbone.name, chosen.size) in done:
            continue
        done.add((backbone.name, chosen.size))
        for amp in formats:
            yield precision(backbone, chosen.size, Acceleration(amp=amp), device)
        yield determinism(backbone, chosen.size, work.params.precision, device)
    yield data_parallel("cuda" if torch.cuda.device_count() >= PROCESSES else "cpu")


def precision(backbone: Named, size: int, acceleration: Acceleration, device: torch.device) -> Check:
    """Loss and gradient of one batch, in mixed precision and in float32."""
    loss, gradient = _one_batch(backbone, size, acceleration, device)
    exact, exact_gradient = _one_batch(backbone, size, PLAIN, device)
    apart = abs(loss - exact) / abs(exact)
    cosine = float(F.cosine_similarity(gradient, exact_gradient, dim=0))
    holds = apart <= LOSS_BOUND and cosine >= DIRECTION_BOUND  # false for what is no number
    name = f"{acceleration.amp} against float32, {backbone.name} at {size} px"
    bound = f"{LOSS_BOUND:.0%} and at least {DIRECTION_BOUND}"
    return Check(name, f"loss {apart:.2%} apart, cosine of the gradients {cosine:.4f}", bound, holds)


def _one_batch(backbone: Named, size: int, acceleration: Acceleration, device: torch.device) -> tuple[float, Tensor]:
    """Dropout is off: it would draw other numbers in another format."""
    data, model = _dataset(size), _model(backbone)
    acceleration.place(model, device)
    model.train()
    for module in model.modules():
        if not isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.training = False
    rows = data.roles["train"][:: SEEN // 2][:BATCH]
    images_NCHW = torch.from_numpy(data.pixels.of(rows.numpy())).permute(0, 3, 1, 2).to(device)
    scaler = acceleration.scaler(device)
    with acceleration.autocast(device):
        features_ND = model.backbone(normalise(images_NCHW))
    loss = F.cross_entropy(model.classifier(features_ND.float()), data.labels_N[rows].to(device))
    scaler.scale(loss).backward()
    found = [one.grad.float().flatten() for one in model.parameters() if one.grad is not None]
    return loss.item(), torch.cat(found) / scaler.get_scale()


def determinism(backbone: Named, size: int, acceleration: Acceleration, device: torch.device) -> Check:
    """The same steps twice, compared bit by bit."""
    first, again = (_trained(backbone, size, acceleration, World(device)) for _ in range(2))
    apart = sum(not torch.equal(a, b) for a, b in zip(*map(_weights, (first, again)), strict=True))
    name = f"{STEPS} steps twice, {backbone.name} at {size} px, {acceleration.amp}"
    return Check(name, f"{apart} of {len(_weights(first))} tensors differ", "none", apart == 0)


def data_parallel(device: str = "cpu") -> Check:
    """Losses of every step in two processes and in one."""
    processes = multiprocessing.get_context("forkserver")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ours, theirs = processes.Pipe(duplex=False)
    ranks = [processes.Process(target=_rank, args=(rank, port, device, theirs)) for rank in range(PROCESSES)]
    for rank in ranks:
        rank.start()
    theirs.close()
    for rank in ranks:
        rank.join()
    backend = "NCCL" if device == "cuda" else "gloo"
    name, bound = f"{PROCESSES} processes against one ({backend})", f"{PARALLEL_BOUND:.1%}"
    if any(rank.exitcode for rank in ranks) or not ours.poll():
        return Check(name, f"exit codes {[rank.exitcode for rank in ranks]}", bound, False)
    shared = ours.recv()
    alone = _trained(SMALL, 16, PLAIN, World(pick_device(device))).history["loss"]
    apart = max(abs(one - other) / abs(other) for one, other in zip(shared, alone, strict=True))
    return Check(name, f"losses of {STEPS} steps at most {apart:.4%} apart", bound, apart <= PARALLEL_BOUND)


def _rank(rank: int, port: int, device: str, answer: Connection) -> None:
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(PROCESSES)}
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    with process_group(device) as world:
        history = _trained(SMALL, 16, PLAIN, world).history["loss"]
        if world.rank == 0:
            answer.send(history)


def _trained(backbone: Named, size: int, acceleration: Acceleration, world: World = ALONE) -> Training:
    """A few steps of pre-training on made-up images."""
    data = _dataset(size)
    settings = Pretraining(lr=0.02, schedule=Schedule("constant"), epochs=1, batch=BATCH)
    training = pretrain(_model(backbone), data, settings, seed=0, validate=None, acceleration=acceleration, world=world)
    training.steps = STEPS
    for _ in training:
        pass
    return training


def _model(backbone: Named) -> Pretrained:
    torch.manual_seed(0)
    network, dim = create_backbone(backbone.name, 3, **backbone.options)
    return Pretrained(network, dim, SEEN)


def _weights(training: Training) -> list[Tensor]:
    return list(training.learner.model.state_dict().values())


def _dataset(size: int) -> Dataset:
    """Noisy patterns of a few classes, in memory."""
    random = np.random.default_rng(0)
    classes = tuple(ClassInfo(f"class {number}", "seen") for number in range(SEEN))
    pattern = random.uniform(40, 215, (SEEN, 1, size, size, 3))
    images = (pattern + random.normal(0, 40, (SEEN, 2 * BATCH, size, size, 3))).clip(0, 255).astype(np.uint8)
    rows = torch.arange(SEEN * 2 * BATCH)
    empty = {role: rows[:0] for role in SPLIT_OF_ROLE}
    return Dataset(
        header=Header("made up", classes, ("all",), "none"),
        pixels=PixelsInMemory(images.reshape(-1, size, size, 3)),
        labels_N=rows // (2 * BATCH),
        domains_N=torch.zeros_like(rows),
        roles={**empty, "train": rows},
    )
