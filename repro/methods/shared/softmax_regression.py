"""Softmax regression of many small tasks at once, to the optimum, whatever their number of classes and images.

A task's W classifiers f minimise the mean over its N images x of log(e^other + Σ_w e^(f_w·x)) − f_own·x, plus
Σ_w Σ_d strength_d (f_wd − centre_wd)². `other` is the log-sum-exp of classifiers that do not move.

By conjugate gradients (Polak and Ribière), preconditioned by a rough Hessian, each step as long as the objective falls.
A task stops by its own decrement and then stands still, so its result does not depend on the tasks beside it.

Dimensions as in `base.py`; N = W·K images, class by class; R ≤ D directions that the images span.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

STEPS = 500
DECREMENT = 0.01  # in units of the precision; about twice what the objective could still fall


def fit_classifiers(support_TWKD: Tensor, other_TN: Tensor, centre_TWD: Tensor, strength_D: Tensor) -> Tensor:
    """Give the classifiers (T×W×D), with their exact derivatives in all that is given."""
    with torch.no_grad():
        task = _Reduced.of(support_TWKD, other_TN, centre_TWD, strength_D)
        fitted_TWD = centre_TWD + _optimum(task) @ task.basis_TRD
    if torch.is_grad_enabled() and any(
        given.requires_grad for given in (support_TWKD, other_TN, centre_TWD, strength_D)
    ):
        return _differentiable(task, fitted_TWD, support_TWKD, other_TN, centre_TWD, strength_D)
    return fitted_TWD


@dataclass(frozen=True)
class _Reduced:
    """The same tasks with f = centre + c·basis: logits are fixed + c·images, and the penalty is ½‖c‖²."""

    images_TNR: Tensor
    basis_TRD: Tensor
    fixed_TWN: Tensor
    other_T1N: Tensor
    targets_NW: Tensor
    alone: bool  # whether there are no other classifiers

    @classmethod
    def of(cls, support_TWKD: Tensor, other_TN: Tensor, centre_TWD: Tensor, strength_D: Tensor) -> "_Reduced":
        images_TND, root_D = support_TWKD.flatten(1, 2), (2 * strength_D).sqrt()
        tasks, images, dim = images_TND.shape
        images_TNR, basis_TRD = images_TND / root_D, (1 / root_D).diag().expand(tasks, -1, -1)
        if 2 * images <= dim:  # otherwise leaving directions out saves less than finding them costs
            directions_TDR, images_TRN = torch.linalg.qr(images_TNR.mT)
            images_TNR, basis_TRD = images_TRN.mT.contiguous(), directions_TDR.mT / root_D
        fixed_TWN = centre_TWD @ images_TND.mT
        alone = bool(other_TN.isneginf().all())
        return cls(images_TNR, basis_TRD, fixed_TWN, other_TN.unsqueeze(1), own_class(support_TWKD), alone)


def own_class(support_TWKD: Tensor) -> Tensor:
    """One-hot targets (N×W) of support images taken class by class."""
    _, ways, shots, _ = support_TWKD.shape
    return torch.eye(ways, dtype=support_TWKD.dtype, device=support_TWKD.device).repeat_interleave(shots, dim=0)


def _optimum(task: _Reduced) -> Tensor:
    """The optimal c (T×W×R)."""
    images_TNR, at = task.images_TNR, _Place.start(task)
    enough = DECREMENT * torch.finfo(images_TNR.dtype).eps
    # A logit's gradient is prediction − target. The targets' part of the sum is constant: c is counted from there.
    wanted_TWR = task.targets_NW.mT @ images_TNR / images_TNR.shape[1]
    c_TWR = -wanted_TWR
    moving_T11 = torch.ones_like(c_TWR[:, :1, :1], dtype=torch.bool)
    last_TWR, last_T11 = torch.zeros_like(c_TWR), torch.ones_like(c_TWR[:, :1, :1])
    along_TWR, along_TWN = torch.zeros_like(c_TWR), torch.zeros_like(at.p_TWN)
    renewed = 0
    for step in range(STEPS):
        if step == renewed:
            curvature, renewed = _Curvature.of(task, at.p_TWN), max(1, 2 * step)
        gradient_TWR = torch.baddbmm(c_TWR, at.p_TWN, images_TNR, alpha=1 / images_TNR.shape[1])
        down_TWR = curvature.solved(gradient_TWR)
        decrement_T11 = _product(down_TWR, gradient_TWR)
        moving_T11 = moving_T11 & (decrement_T11 > enough)
        if not moving_T11.any():
            break
        kept_T11 = ((decrement_T11 - _product(down_TWR, last_TWR)) / last_T11).clamp_min_(0)
        kept_T11 = torch.where(moving_T11, kept_T11, 0)
        along_TWN = torch.bmm(down_TWR, images_TNR.mT).addcmul_(kept_T11, along_TWN)
        along_TWR = down_TWR.addcmul_(kept_T11, along_TWR)
        first_T11, bend_T11 = _product(gradient_TWR, along_TWR), _product(along_TWR, along_TWR)
        length_T11 = torch.where(moving_T11, at.step_length(along_TWN, first_T11, bend_T11), 0)
        c_TWR.addcmul_(length_T11, along_TWR, value=-1)
        at.move(length_T11, along_TWN)
        last_TWR, last_T11 = gradient_TWR, decrement_T11
    return c_TWR.add_(wanted_TWR)


@dataclass(frozen=True)
class _Place:
    """Where the tasks are: probabilities of the classes and their logarithms, which those of `other` complete to 1."""

    p_TWN: Tensor
    logs_TWN: Tensor
    other_T1N: Tensor

    @classmethod
    def start(cls, task: _Reduced) -> "_Place":
        logs = torch.cat([task.other_T1N, task.fixed_TWN], dim=1).log_softmax(dim=1)
        logs_TWN = logs[:, 1:].contiguous()
        return cls(logs_TWN.exp(), logs_TWN, logs[:, :1].contiguous())

    def step_length(self, along_TWN: Tensor, first_T11: Tensor, bend_T11: Tensor) -> Tensor:
        """How far to go back along a line (T×1×1), given the objective's slope there and how the penalty bends.

        Third derivatives of a log-sum-exp are at most the second times the range of the logits' change; so a Newton
        step of that size ρ, shortened by log(1 + ρ)/ρ, never overshoots (Sun & Tran-Dinh 2019, generalised
        self-concordance).
        """
        weighted_TWN = self.p_TWN * along_TWN
        mean_T1N = weighted_TWN.sum(dim=1, keepdim=True)
        spread_T11 = _product(weighted_TWN, along_TWN) - _product(mean_T1N, mean_T1N)
        newton_T11 = first_T11 / (bend_T11 + spread_T11 / along_TWN.shape[2])
        highest_T11, lowest_T11 = along_TWN.amax(dim=(1, 2), keepdim=True), along_TWN.amin(dim=(1, 2), keepdim=True)
        range_T11 = highest_T11.clamp_min_(0) - lowest_T11.clamp_max_(0)
        size_T11 = (range_T11 * newton_T11.abs()).clamp_min_(1e-6)
        return newton_T11 * size_T11.log1p() / size_T11

    def move(self, length_T11: Tensor, along_TWN: Tensor) -> None:
        """Go back along a line. Logarithms are at most 0 before, so no maximum is needed against overflow."""
        torch.exp(self.logs_TWN.addcmul_(length_T11, along_TWN, value=-1), out=self.p_TWN)
        total_T1N = self.p_TWN.sum(dim=1, keepdim=True).add_(self.other_T1N.exp())
        self.p_TWN.mul_(total_T1N.reciprocal())
        total_T1N.log_()
        self.logs_TWN.sub_(total_T1N)
        self.other_T1N.sub_(total_T1N)


@dataclass(frozen=True)
class _Curvature:
    """The Hessian, roughly: each class has the same matrix over the images of other classes, and its own images on top,
    as one image of their summed curvature. Where there are no other classifiers, only differences of classes count."""

    inverse_TRR: Tensor
    own_TWR: Tensor
    share_TWR: Tensor
    common: float

    @classmethod
    def of(cls, task: _Reduced, p_TWN: Tensor) -> "_Curvature":
        images_TNR, (tasks, ways, images) = task.images_TNR, p_TWN.shape
        p_TWWK = p_TWN.view(tasks, ways, ways, -1)
        own_TN1 = p_TWWK.diagonal(dim1=1, dim2=2).mT.reshape(tasks, images, 1)
        own_TN1 = own_TN1 * (1 - own_TN1)
        all_T1N = p_TWN.sum(dim=1, keepdim=True) - p_TWN.square().sum(dim=1, keepdim=True)
        rest_TN1 = (all_T1N.mT - own_TN1).clamp_min_(0) / max(1, ways - 1)
        average_TRR = (rest_TN1 / images * images_TNR).mT @ images_TNR
        average_TRR.diagonal(dim1=1, dim2=2).add_(1)
        inverse_TRR = torch.cholesky_inverse(torch.linalg.cholesky_ex(average_TRR).L)
        more_TW1K = ((own_TN1 - rest_TN1).clamp_min_(0) / images).view(tasks, ways, 1, -1)
        sum_TW1 = more_TW1K.sum(dim=3)
        own_TWR = (more_TW1K @ images_TNR.unflatten(1, (ways, -1))).squeeze(2)
        own_TWR = own_TWR / sum_TW1.clamp_min(torch.finfo(own_TWR.dtype).tiny)
        # (A + s·xxᵀ)⁻¹ = A⁻¹ − A⁻¹x·xᵀA⁻¹ · s / (1 + s·xᵀA⁻¹x), by Sherman and Morrison.
        solved_TWR = own_TWR @ inverse_TRR
        share_TW1 = sum_TW1 / (1 + sum_TW1 * (solved_TWR * own_TWR).sum(dim=2, keepdim=True))
        return cls(inverse_TRR, solved_TWR, share_TW1 * solved_TWR, 1 / ways if task.alone else 0)

    def solved(self, gradient_TWR: Tensor) -> Tensor:
        """Curvature⁻¹ · gradient."""
        found_TWR = gradient_TWR @ self.inverse_TRR
        found_TWR.addcmul_(self.share_TWR, (self.own_TWR * gradient_TWR).sum(dim=2, keepdim=True), value=-1)
        if self.common:
            found_TWR.sub_(found_TWR.sum(dim=1, keepdim=True), alpha=self.common)
        return found_TWR


def _differentiable(
    task: _Reduced, fitted_TWD: Tensor, support_TWKD: Tensor, other_TN: Tensor, centre_TWD: Tensor, strength_D: Tensor
) -> Tensor:
    """One more Newton step, its Hessian constant: it leaves the optimum in place and has the optimum's derivatives.

    At the optimum the gradient is 0 whatever is given, so d optimum = −Hessian⁻¹ · d gradient.
    """
    images_TND = support_TWKD.flatten(1, 2)
    p_TNW = torch.cat([other_TN.unsqueeze(2), images_TND @ fitted_TWD.mT], dim=2).softmax(dim=2)[..., 1:]
    data_TWD = (p_TNW - task.targets_NW).mT @ images_TND / images_TND.shape[1]
    gradient_TWD = data_TWD + 2 * strength_D * (fitted_TWD - centre_TWD)
    curvature_TNWW = torch.diag_embed(p_TNW.detach()) - p_TNW.detach().unsqueeze(3) * p_TNW.detach().unsqueeze(2)
    blocks = torch.einsum("tnwv,tni,tnj->twivj", curvature_TNWW / images_TND.shape[1], task.images_TNR, task.images_TNR)
    hessian = blocks.flatten(3, 4).flatten(1, 2)
    hessian.diagonal(dim1=1, dim2=2).add_(1)
    inside_TWR = gradient_TWD @ task.basis_TRD.mT
    solved_TWR = torch.linalg.solve(hessian, inside_TWR.flatten(1)).view_as(inside_TWR)
    # Outside of what the images span, the penalty is all there is.
    outside_TWD = gradient_TWD / (2 * strength_D.detach()) - inside_TWR @ task.basis_TRD
    return fitted_TWD - solved_TWR @ task.basis_TRD - outside_TWD


def _product(one: Tensor, other: Tensor) -> Tensor:
    """Inner products of every task's two matrices (T×1×1)."""
    return (one * other).sum(dim=(1, 2), keepdim=True)
