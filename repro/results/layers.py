"""How far a mean over tasks moves with other classes or images: the bootstrap over them, in its limit.

Tasks reuse the same classes and images hundreds of times, so tasks are not the unit. Drawing the units (classes, or
images) anew with replacement gives each a multiplicity, and a task the weight 1 + Σ (multiplicity − 1) over what it
holds: the first-order term of the product of multiplicities, which itself is nearly always 0. The weighted mean moves
by Σ (multiplicity − 1) · pull, where the pull of a unit is the share of tasks that hold it times how far their mean
lies from the mean of all. Over all draws its variance is Σ pull², so nothing has to be drawn.

Two corrections, those of Wager and Athey for the infinitesimal jackknife ("Estimation and Inference of Heterogeneous
Treatment Effects using Random Forests", https://arxiv.org/abs/1510.04342): a task holds m of n units without
repetition, which shrinks a pull by (n − m)/(n − 1); and the noise of finitely many tasks swells every squared pull,
which is subtracted again.

T tasks, U units, G strata, P draws of a task (one, or one per class), R = T·P draws, M units of a draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Pulls:
    """The pull of every named unit on a mean, what noise adds to the sum of their squares, and degrees of freedom."""

    names_U: np.ndarray
    pulls_U: np.ndarray
    noise: float
    freedom: float

    @property
    def variance(self) -> float:
        """The variance of the mean over other units."""
        return max(float(np.square(self.pulls_U).sum()) - self.noise, 0.0)

    @property
    def wobble(self) -> float:
        """Half the variance of that variance, as of a sum of squares before the noise is subtracted."""
        total = self.variance + self.noise
        return total**2 / self.freedom if total > 0 else 0.0

    def scaled(self, factor: float) -> "Pulls":
        """The pulls on a multiple of the mean."""
        return Pulls(self.names_U, factor * self.pulls_U, factor**2 * self.noise, self.freedom)

    @staticmethod
    def sum(pulls: "Sequence[Pulls]") -> "Pulls":
        """The pulls on a sum of means that move with the same units."""
        names_U, unit = np.unique(np.concatenate([each.names_U for each in pulls]), return_inverse=True)
        pulls_U = np.bincount(unit, np.concatenate([each.pulls_U for each in pulls]))
        return Pulls(names_U, pulls_U, sum(each.noise for each in pulls), max(each.freedom for each in pulls))


class Layer:
    """Units of one kind and the draws that took them, all of equally many.

    Units that were never drawn together, as images of two classes or classes of two domains, are separate strata.
    """

    def __init__(self, drawn_TPM: np.ndarray) -> None:
        self.tasks, self.draws, self.size = drawn_TPM.shape
        drawn_RM = drawn_TPM.reshape(-1, self.size)
        self.names_U = np.flatnonzero(np.bincount(drawn_RM.ravel()))
        place = np.zeros(int(self.names_U[-1]) + 1, np.int32)
        place[self.names_U] = np.arange(len(self.names_U))
        self.units_RM = place[drawn_RM]
        stratum_U = _connected(self.units_RM, len(self.names_U))
        self.stratum_R = stratum_U[self.units_RM[:, 0]]
        self.units_G = np.bincount(stratum_U).astype(float)
        left_G = self.units_G - self.size
        unshrunk_G = np.where(left_G > 0, (self.units_G - 1) / np.maximum(left_G, 1), 0.0)
        # n/(n − 1) under the root, as in any variance of a sample.
        self.factor_G = unshrunk_G * np.sqrt(self.units_G / np.maximum(self.units_G - 1, 1))
        self.freedom = float((self.units_G - 1)[self.factor_G > 0].sum())

    @property
    def varies(self) -> bool:
        """Whether draws leave units out; where each takes all of them, nothing tells one unit from another."""
        return self.freedom > 0

    def pulls(self, values_T: np.ndarray) -> Pulls:
        """The pull of every unit on the mean of these values."""
        values_R = np.repeat(values_T, self.draws)
        mean_G = np.bincount(self.stratum_R, values_R) / np.bincount(self.stratum_R)
        apart_R = values_R - mean_G[self.stratum_R]
        pulls_U = self._holds_UR @ (apart_R * self.factor_G[self.stratum_R]) / self.tasks
        # Σ over units of (held − share of draws that hold it)², the same for every draw of a stratum.
        square_G = self.size * (1 - self.size / self.units_G)
        squares_G = np.bincount(self.stratum_R, np.square(apart_R))
        noise = float((squares_G * square_G * np.square(self.factor_G)).sum()) / self.tasks**2
        return Pulls(self.names_U, pulls_U, noise, self.freedom)

    @cached_property
    def _holds_UR(self) -> Any:
        from scipy.sparse import csr_array

        draws, size = self.units_RM.shape
        ends = np.arange(draws + 1) * size
        held = np.ones(draws * size, np.float32)
        return csr_array((held, self.units_RM.ravel(), ends), shape=(draws, len(self.names_U))).T


def _connected(units_RM: np.ndarray, units: int) -> np.ndarray:
    """The stratum of every unit: a unit is linked to the first one of its draw."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first_RM = np.broadcast_to(units_RM[:, :1], units_RM.shape)
    links = coo_array((np.ones(units_RM.size, np.int8), (first_RM.ravel(), units_RM.ravel())), shape=(units, units))
    return np.asarray(connected_components(links.tocsr(), directed=False)[1])
