"""CASTLE and aCASTLE in the released form against vectors made with the authors' unmodified code."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from repro.methods.acastle import ACastle
from repro.methods.base import EmbeddedBatch
from repro.methods.castle import Castle

GOLDEN = Path(__file__).parent.parent / "golden"
METHODS = {"castle": Castle, "acastle": ACastle}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
PROJECTIONS = ("w_qs", "w_ks", "w_vs", "fc")


class Golden:
    """One case: inputs in the wanted precision, expected outputs, and the method with the case's weights."""

    def __init__(self, name: str, shot: int, dtype: torch.dtype) -> None:
        with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as file:
            self.arrays = {key: file[key] for key in file.files}
        self.prefix, self.dtype, self.shot = f"s{shot}_h1_t1_", dtype, shot
        bases, dim = self["shared_key"].shape[1:]
        seen = len(self["cls_weight"])
        tasks = len(self["train_task_labels"])
        options = {"dictionary": "released", "ratio": bases / seen, "classifiers": tasks}
        self.method = METHODS[name](nn.Identity(), dim, seen, **options).to(dtype)
        self.method.eval()
        with torch.no_grad():
            self.method.seen_weight_SD.copy_(self["cls_weight"])
            dictionary = self.method.synthesis.dictionary
            dictionary.bases_MD.copy_(self["shared_key"][0])
            for projection in PROJECTIONS:
                getattr(dictionary, projection).weight.copy_(self[projection])

    def __getitem__(self, key: str) -> Tensor:
        tensor = torch.from_numpy(self.arrays[self.prefix + key])
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def expected(self, key: str) -> Tensor:
        return self[key + ("_f64" if self.dtype == torch.float64 else "")]

    def equals(self, actual: Tensor, key: str) -> None:
        tolerance = TOLERANCE[self.dtype]
        torch.testing.assert_close(actual, self.expected(key).view_as(actual), atol=tolerance, rtol=tolerance)

    def support_WKD(self, key: str) -> Tensor:
        """The vectors are shot-major; the interface wants ways first."""
        return self[key].unflatten(0, (self.shot, -1)).transpose(0, 1)


@pytest.fixture(params=[(name, shot, dtype) for name in METHODS for shot in (1, 5) for dtype in TOLERANCE], ids=str)
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(*request.param)


def test_joint_and_few_shot_logits_equal_the_released_code(golden: Golden) -> None:
    support_TWKD, query_TQD = golden.support_WKD("support")[None], golden["query"][None]
    with torch.no_grad():
        seen_TQS, unseen_TQW = golden.method.joint_logits(support_TWKD, query_TQD)
        few_shot_TQW = golden.method.unseen_logits(support_TWKD, query_TQD)
    golden.equals(seen_TQS[0], "logits_s")
    golden.equals(unseen_TQW[0], "logits_u")
    golden.equals(few_shot_TQW[0], "logits_fsl")


def test_training_loss_and_its_gradients_equal_the_released_code(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels_C = golden["train_support_label"][: golden.expected("grad_train_support").shape[0] // golden.shot]
    position = {int(label): place for place, label in enumerate(labels_C)}
    tasks_TW = torch.tensor([[position[int(label)] for label in task] for task in golden["train_task_labels"]])
    for module in ("castle", "acastle"):
        monkeypatch.setattr(f"repro.methods.{module}.draw_class_sets", lambda *_: tasks_TW)
    support, free_BD = golden["train_support"].requires_grad_(), golden["train_query"].requires_grad_()
    support_CKD = support.unflatten(0, (golden.shot, -1)).transpose(0, 1)
    batch = EmbeddedBatch(
        support_TCKD=support_CKD[None],
        query_TCQD=support_CKD[None, :, :0],
        labels_TC=labels_C[None],
        free_BD=free_BD,
        free_labels_B=golden["train_query_label"],
    )
    loss = golden.method.loss(batch, torch.Generator())
    loss.backward()
    golden.equals(loss.detach(), "train_loss")
    golden.equals(support.grad, "grad_train_support")
    golden.equals(free_BD.grad, "grad_train_query")
    golden.equals(golden.method.seen_weight_SD.grad, "grad_cls_weight")
    dictionary = golden.method.synthesis.dictionary
    golden.equals(dictionary.bases_MD.grad, "grad_shared_key")
    for projection in PROJECTIONS:
        golden.equals(getattr(dictionary, projection).weight.grad, f"grad_{projection}")
