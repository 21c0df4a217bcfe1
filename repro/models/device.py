"""Where a training runs and in which number format."""

import ctypes
import os
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from pydantic import with_config
from torch import nn

from repro.errors import BadInput
from repro.options import STRICT

AMP_TYPES = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST = 2**31 - 1  # bytes, as mallopt takes them


def pick_device(name: str = "auto") -> torch.device:
    """The named device; `auto` is CUDA where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,4})?", name):
        raise BadInput(f"device {name!r} is unknown; expected auto, cpu, cuda or cuda:<number>")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise BadInput(f"device {name!r}: {torch.cuda.device_count()} CUDA devices here; use auto or cpu")
    return device


def use_cpu(threads: int) -> None:
    """Compute with so many threads, in memory that is kept; no value depends on the latter.

    Raises BadInput where OpenMP may not have the threads: it would wait for them for ever.
    """
    limit = os.environ.get("OMP_THREAD_LIMIT", "").strip()
    if limit.isdecimal() and int(limit) < threads:
        message = f"OMP_THREAD_LIMIT is {limit}, expected at least {threads}, the `threads` of params.yaml"
        raise BadInput(f"{message}; unset it in the environment")
    torch.set_num_threads(threads)
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Let glibc use freed arrays again, where it is the C library.

    It would give large ones back to the system, and a training step spent a quarter of its time on fresh pages.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, LARGEST)


def make_deterministic() -> None:
    """Ask CUDA for kernels that give the same bits every time, as the CPU's do; a kernel that cannot is warned of.

    To be called before the first CUDA computation: the workspace of matrix products is fixed then.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)


@with_config(STRICT)
@dataclass(frozen=True)
class Acceleration:
    """How the backbone computes: mixed precision (`none`, `bf16`, `fp16`), memory layout, `torch.compile`."""

    amp: str = "none"
    channels_last: bool = True
    compile: bool = False

    def __post_init__(self) -> None:
        if self.amp == "auto":
            message = "amp 'auto' would let results depend on the machine, expected the same format on every one"
            raise BadInput(f"{message}; choose one of {', '.join(AMP_TYPES)}")
        if self.amp not in AMP_TYPES:
            raise BadInput(f"amp {self.amp!r} is unknown; expected one of {', '.join(AMP_TYPES)}")

    def autocast(self, device: torch.device) -> AbstractContextManager[None]:
        """The precision of the backbone's forward pass; losses are always float32."""
        return torch.autocast(device.type, AMP_TYPES[self.amp], enabled=self.amp != "none")

    def scaler(self, device: torch.device) -> torch.amp.GradScaler:
        """fp16 gradients underflow unless the loss is scaled up; other formats pass through unscaled."""
        return torch.amp.GradScaler(device.type, enabled=self.amp == "fp16")

    def place(self, model: nn.Module, device: torch.device) -> None:
        """Move a model to the device, convolution weights in the chosen layout."""
        model.to(device)
        model.to(memory_format=torch.channels_last if self.channels_last else torch.contiguous_format)


PLAIN = Acceleration()
