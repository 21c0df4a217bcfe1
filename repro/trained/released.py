"""The authors' checkpoints: reading and writing their `.pth` files, and what their names are called here.

A file holds `params`, a flat dictionary. The backbone lies under `encoder.`, in files written on several GPUs under
`encoder.module.`; the rest is named below. Pre-trained files hold a classifier with a bias, which the authors' own
joint classifiers leave out, and so does the import.
"""

import re
import warnings
from pathlib import Path

import torch
from torch import Tensor

from repro.errors import BadInput, one_line
from repro.files import whole_file
from repro.models.weights import is_plain

BACKBONE = "encoder."
PARALLEL = "encoder.module."
OURS_BY_RELEASED = {
    "cls.weight": "seen_weight_SD",
    "shared_key": "synthesis.dictionary.bases_MD",
    "slf_attn.w_qs.weight": "synthesis.dictionary.w_qs.weight",
    "slf_attn.w_ks.weight": "synthesis.dictionary.w_ks.weight",
    "slf_attn.w_vs.weight": "synthesis.dictionary.w_vs.weight",
    "slf_attn.fc.weight": "synthesis.dictionary.fc.weight",
    "fc.weight": "classifier.weight_SD",
}
RELEASED_BY_OURS = {ours: released for released, ours in OURS_BY_RELEASED.items()}
DROPPED = "fc.bias"
UNPICKLED = re.compile(r"[Uu]nsupported (.{1,120}?)(?: was not | whose | Please | Check |\.? *$)")  # as PyTorch says it


def read_released(file: Path) -> dict[str, Tensor]:
    """Read `params` of a released file. Only tensors are unpickled; anything else in the file is refused."""
    if not file.is_file():
        raise BadInput(f"{file}: no such file; expected a released .pth checkpoint")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about tensors that are refused below
            content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged stream makes the restricted reader raise anything
        reason = _reason(error)
        message = f"{file}: refused, not a checkpoint of tensors alone ({reason})"
        raise BadInput(f"{message}; fetch the file again from where it was published") from error
    params = content.get("params") if isinstance(content, dict) else None
    if not isinstance(params, dict) or not all(isinstance(value, Tensor) for value in params.values()):
        raise BadInput(f"{file}: holds no dictionary `params` of tensors; expected a released .pth checkpoint")
    for name, tensor in params.items():
        if not isinstance(name, str) or not is_plain(tensor):
            kind = f"{tensor.dtype}, {tensor.layout}".replace("torch.", "")
            message = f"{file}: {name!r:.60} is {kind} on {tensor.device.type}, expected plain numbers under a name"
            raise BadInput(f"{message}; convert it to float32 first")
    return params


def _reason(error: Exception) -> str:
    """What was met in the file, without PyTorch's advice to run its code."""
    said = one_line(error)
    if met := UNPICKLED.search(said):
        return f"unsupported {met[1]}"
    if "weights_only" in said or not said:
        return "it holds something else"
    return said.partition(". ")[0].rstrip(".")


def write_released(file: Path, params: dict[str, Tensor]) -> None:
    """Write `params` as the released code reads it."""
    with whole_file(file) as partial, partial.open("wb") as stream:  # given a name, torch hides why it cannot write
        torch.save({"params": params}, stream)


def to_ours(params: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename released tensors; names that are not known stay, so that a strict load names them."""
    return {_our_name(name): _without_batch(name, tensor) for name, tensor in params.items() if name != DROPPED}


def to_released(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename a method's or a pre-training's tensors as the released code names them.

    Raises BadInput, naming them all, for tensors that the released code has no place for.
    """
    params = {_released_name(name): tensor for name, tensor in state.items()}
    unknown = [name for name in state if name == _released_name(name)]
    if unknown:
        raise BadInput(
            f"the released format has no place for {', '.join(unknown)}; "
            'expected a pre-trained backbone, or CASTLE or aCASTLE with dictionary "released"'
        )
    if "shared_key" in params:
        params["shared_key"] = params["shared_key"].unsqueeze(0)
    if "fc.weight" in params:
        params[DROPPED] = torch.zeros(len(params["fc.weight"]))
    return params


def _our_name(released: str) -> str:
    for prefix in (PARALLEL, BACKBONE):
        if released.startswith(prefix):
            return f"backbone.{released.removeprefix(prefix)}"
    return OURS_BY_RELEASED.get(released, released)


def _released_name(ours: str) -> str:
    if ours.startswith("backbone."):
        return BACKBONE + ours.removeprefix("backbone.")
    return RELEASED_BY_OURS.get(ours, ours)


def _without_batch(released: str, tensor: Tensor) -> Tensor:
    """The shared bases are stored with a leading dimension of one."""
    return tensor.squeeze(0) if released == "shared_key" and tensor.ndim == 3 else tensor
