"""Softmax regression of one task by a solver that is not ours, in double precision and to its end."""

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp
from torch import Tensor


def by_scipy(support_WKD: Tensor, other_N: Tensor, centre_WD: Tensor, strength_D: Tensor) -> Tensor:
    """One task by L-BFGS to machine precision."""
    ways, shots, dim = support_WKD.shape
    images, other = support_WKD.flatten(0, 1).numpy(), other_N.numpy()
    labels = np.repeat(np.arange(ways), shots)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        away = flat.reshape(ways, dim) - centre_WD.numpy()
        logits = np.column_stack([other, images @ flat.reshape(ways, dim).T])
        total = logsumexp(logits, axis=1)
        chances = np.exp(logits - total[:, None])[:, 1:]
        loss = np.mean(total - logits[np.arange(len(labels)), labels + 1]) + (strength_D.numpy() * away**2).sum()
        chances[np.arange(len(labels)), labels] -= 1
        return loss, (chances.T @ images / len(labels) + 2 * strength_D.numpy() * away).ravel()

    limits = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 0.0, "gtol": 1e-9, "maxcor": 50}
    found = minimize(objective, centre_WD.numpy().ravel(), jac=True, method="L-BFGS-B", options=limits)
    return torch.from_numpy(found.x).view(ways, dim)
