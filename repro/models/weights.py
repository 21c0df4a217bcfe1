"""Weights on disk: safetensors only, written whole, loaded strictly."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from repro.errors import BadInput
from repro.files import whole_file

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def save_weights(module: nn.Module, file: Path) -> None:
    """Write all weights and buffers of a module; one that is not finite is refused."""
    tensors = module.state_dict()
    _require_finite(tensors, f"{type(module).__name__}, to be saved as {file}")
    with whole_file(file) as partial:
        write_tensors(tensors, partial)


def load_strictly(module: nn.Module, file: Path) -> None:
    """Load what `save_weights` wrote: every name, every shape, all finite, or BadInput that names what differs."""
    install(module, read_tensors(file), str(file))


def write_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Write named tensors; tensors that share memory are written each on its own."""
    own = {name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    save_file(own, file)


def read_tensors(file: Path) -> dict[str, Tensor]:
    """Read named tensors to the CPU."""
    if not file.is_file():
        raise BadInput(f"{file}: no such file; expected weights there, run the stage that trains them")
    try:
        return load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        message = f"{file}: not a whole safetensors file ({error}); delete it and run the stage that writes it again"
        raise BadInput(message) from error


def install(module: nn.Module, tensors: Mapping[str, Tensor], origin: str) -> None:
    """Copy tensors into a module under the rules of `load_strictly`; `origin` is named in the message."""
    own = module.state_dict()
    differences = [f"missing {name}" for name in own if name not in tensors]
    differences += [f"unexpected {name}" for name in tensors if name not in own]
    differences += [
        f"{name} has shape {tuple(tensors[name].shape)} instead of {tuple(own[name].shape)}"
        for name in own
        if name in tensors and tensors[name].shape != own[name].shape
    ]
    differences += [
        f"{name} holds {tensors[name].dtype} instead of {own[name].dtype}"
        for name in own
        if name in tensors and not _same_kind(tensors[name], own[name])
    ]
    if differences:
        raise BadInput(
            f"{origin} does not fit {type(module).__name__}: {'; '.join(differences)}; "
            "build the model with the settings of the file, or train it again"
        )
    _require_finite(tensors, origin)
    module.load_state_dict(dict(tensors))


def is_plain(tensor: Tensor) -> bool:
    """Tell whether a tensor holds ordinary numbers: neither sparse, quantised, complex, nor of a format like float8."""
    return tensor.layout == torch.strided and tensor.device.type != "meta" and tensor.dtype in (*FLOATS, *INTEGERS)


def _same_kind(found: Tensor, expected: Tensor) -> bool:
    """Tell whether one can be copied into the other and mean the same."""
    return is_plain(found) and found.is_floating_point() == expected.is_floating_point()


def _require_finite(tensors: Mapping[str, Tensor], origin: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise BadInput(f"{origin}: {name} holds NaN or infinite values; train again with a lower lr")
