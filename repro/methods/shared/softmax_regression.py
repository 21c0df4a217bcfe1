"""Softmax regression of many small tasks at once, to the optimum, whatever their number of classes and images.

A task's W classifiers f minimise the mean over its N images x of log(e^other + Σ_w e^(f_w·x)) − f_own·x, plus
Σ_w Σ_d strength_d (f_wd − centre_wd)². `other` is the log-sum-exp of classifiers that do not move.

Newton's method by preconditioned conjugate gradients, every step as long as the objective falls. A task stops by its
own decrement and then stands still, so its result does not depend on the tasks beside it.

Dimensions as in `base.py`; N = W·K images, class by class; R = min(N, D) directions that the images span.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

NEWTON_STEPS, DECREMENT = 40, 1e-7  # the decrement is about twice what the objective could still fall
CONJUGATE_STEPS, RESIDUAL = 60, 0.1  # the residual is relative, in the preconditioner's norm
SEARCH_STEPS = 3


def fit_classifiers(support_TWKD: Tensor, other_TN: Tensor, centre_TWD: Tensor, strength_D: Tensor) -> Tensor:
    """Give the classifiers (T×W×D), with their exact derivatives in all that is given."""
    with torch.no_grad():
        task = _Reduced.of(support_TWKD, other_TN, centre_TWD, strength_D)
        fitted_TWD = centre_TWD + _newton(task) @ task.basis_TRD
    if torch.is_grad_enabled() and any(
        given.requires_grad for given in (support_TWKD, other_TN, centre_TWD, strength_D)
    ):
        return _differentiable(task, fitted_TWD, support_TWKD, other_TN, centre_TWD, strength_D)
    return fitted_TWD


@dataclass(frozen=True)
class _Reduced:
    """The same tasks with f = centre + c·basis: logits are fixed + images·c, and the penalty is ½‖c‖²."""

    images_TNR: Tensor
    basis_TRD: Tensor
    fixed_TNW: Tensor
    other_TN1: Tensor
    targets_NW: Tensor

    @classmethod
    def of(cls, support_TWKD: Tensor, other_TN: Tensor, centre_TWD: Tensor, strength_D: Tensor) -> "_Reduced":
        images_TND, root_D = support_TWKD.flatten(1, 2), (2 * strength_D).sqrt()
        directions_TDR, images_TRN = torch.linalg.qr((images_TND / root_D).mT)
        fixed_TNW, targets_NW = images_TND @ centre_TWD.mT, own_class(support_TWKD)
        return cls(images_TRN.mT.contiguous(), directions_TDR.mT / root_D, fixed_TNW, other_TN.unsqueeze(2), targets_NW)

    def probabilities(self, logits_TNW: Tensor) -> Tensor:
        return torch.cat([self.other_TN1, logits_TNW], dim=2).softmax(dim=2)[..., 1:]


def own_class(support_TWKD: Tensor) -> Tensor:
    """One-hot targets (N×W) of support images taken class by class."""
    _, ways, shots, _ = support_TWKD.shape
    return torch.eye(ways, dtype=support_TWKD.dtype, device=support_TWKD.device).repeat_interleave(shots, dim=0)


def _newton(task: _Reduced) -> Tensor:
    """The optimal c (T×W×R)."""
    logits_TNW, images_TNR = task.fixed_TNW, task.images_TNR
    c_TWR = images_TNR.new_zeros(len(images_TNR), logits_TNW.shape[2], images_TNR.shape[2])
    moving_T11 = torch.ones_like(c_TWR[:, :1, :1], dtype=torch.bool)
    for _ in range(NEWTON_STEPS):
        p_TNW = task.probabilities(logits_TNW)
        gradient_TWR = (p_TNW - task.targets_NW).mT @ images_TNR / images_TNR.shape[1] + c_TWR
        direction_TWR = _conjugate_gradients(images_TNR, p_TNW, gradient_TWR)
        change_TNW = images_TNR @ direction_TWR.mT
        length_T11 = _step_length(task, p_TNW, logits_TNW, change_TNW, c_TWR, direction_TWR) * moving_T11
        c_TWR, logits_TNW = c_TWR - length_T11 * direction_TWR, logits_TNW - length_T11 * change_TNW
        moving_T11 = moving_T11 & (_product(direction_TWR, gradient_TWR) > DECREMENT)
        if not moving_T11.any():
            break
    return c_TWR


def _conjugate_gradients(images_TNR: Tensor, p_TNW: Tensor, gradient_TWR: Tensor) -> Tensor:
    """Solve Hessian · direction = gradient, roughly.

    The preconditioner takes all classes to have their average curvature, one matrix of R×R per task.
    """
    images, ways = p_TNW.shape[1:]
    curvature_TN1 = (p_TNW * (1 - p_TNW)).sum(dim=2, keepdim=True) / (images * ways)
    average_TRR = (curvature_TN1 * images_TNR).mT @ images_TNR
    average_TRR.diagonal(dim1=1, dim2=2).add_(1)
    inverse_TRR = torch.cholesky_inverse(torch.linalg.cholesky_ex(average_TRR).L)
    found_TWR, left_TWR = torch.zeros_like(gradient_TWR), gradient_TWR
    towards_TWR = near_TWR = left_TWR @ inverse_TRR
    size_T11 = _product(left_TWR, near_TWR)
    enough_T11 = RESIDUAL**2 * size_T11
    for _ in range(CONJUGATE_STEPS):
        weighted_TNW = p_TNW * (images_TNR @ towards_TWR.mT)
        weighted_TNW = weighted_TNW - p_TNW * weighted_TNW.sum(dim=2, keepdim=True)
        curved_TWR = weighted_TNW.mT @ images_TNR / images + towards_TWR
        step_T11 = torch.where(size_T11 > enough_T11, size_T11 / _product(towards_TWR, curved_TWR), 0)
        found_TWR, left_TWR = found_TWR + step_T11 * towards_TWR, left_TWR - step_T11 * curved_TWR
        near_TWR = left_TWR @ inverse_TRR
        before_T11, size_T11 = size_T11, _product(left_TWR, near_TWR)
        if not (size_T11 > enough_T11).any():
            break
        towards_TWR = near_TWR + torch.where(step_T11 > 0, size_T11 / before_T11, 0) * towards_TWR
    return found_TWR


def _step_length(
    task: _Reduced, p_TNW: Tensor, logits_TNW: Tensor, change_TNW: Tensor, c_TWR: Tensor, direction_TWR: Tensor
) -> Tensor:
    """How far to go against the direction (T×1×1): Newton's method again, in this one number.

    Third derivatives of a log-sum-exp are at most the second times the range of the logits' change; so a Newton step
    of that size ρ, shortened by log(1 + ρ)/ρ, never overshoots (Sun & Tran-Dinh 2019, generalised self-concordance).
    """
    images = len(task.targets_NW)
    range_T11 = (change_TNW.amax(dim=2).clamp_min(0) - change_TNW.amin(dim=2).clamp_max(0)).amax(dim=1)[:, None, None]
    bend_T11, slope_T11 = _product(direction_TWR, direction_TWR), _product(direction_TWR, c_TWR)
    length_T11 = torch.zeros_like(bend_T11)
    for _ in range(SEARCH_STEPS):
        weighted_TNW = p_TNW * change_TNW
        first_T11 = _product(p_TNW - task.targets_NW, change_TNW) / images + slope_T11 - length_T11 * bend_T11
        spread_T11 = _product(weighted_TNW, change_TNW) - weighted_TNW.sum(dim=2, keepdim=True).square().sum(
            dim=1, keepdim=True
        )
        newton_T11 = torch.nan_to_num(first_T11 / (spread_T11 / images + bend_T11))
        size_T11 = (range_T11 * newton_T11.abs()).clamp_min(1e-6)
        length_T11 = length_T11 + newton_T11 * size_T11.log1p() / size_T11
        p_TNW = task.probabilities(logits_TNW - length_T11 * change_TNW)
    return length_T11


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
