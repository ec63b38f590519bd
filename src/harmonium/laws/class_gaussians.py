"""Starting points that look a little like the data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.draws import draw_integers, draw_normal


@dataclass(frozen=True, eq=False)
class ClassGaussians:
    """A Gaussian for each class, `N(μ_y, Σ_y)`: informative starts for chains (Zhu et al. 2021, eq. 8).

    `mean` is `(n_classes, *shape)`, `factor` the lower Cholesky factors of the covariances, `(n_classes, d, d)`.
    """

    mean: Tensor
    factor: Tensor

    @classmethod
    def fitted(cls, x: Tensor, labels: Tensor, *, n_classes: int | None = None, floor: float = 1e-2) -> ClassGaussians:
        """Return the Gaussians of labeled data; `floor²` is added to every variance. Rows with label -1 are left out.

        >>> from harmonium.laws.class_gaussians import ClassGaussians
        >>> laws = ClassGaussians.fitted(torch.arange(300.0).reshape(100, 3), torch.arange(100) % 2)
        >>> laws.initial(torch.tensor([0, 1, 1])).shape
        torch.Size([3, 3])
        """
        n = int(labels.max()) + 1 if n_classes is None else n_classes
        means, factors = [], []
        for y in range(n):
            rows = x[labels == y].flatten(1).double()
            if len(rows) < 2:
                raise ValueError(f"Class {y} has {len(rows)} rows; a Gaussian needs 2. Leave its starts uniform.")
            centered = rows - rows.mean(0)
            covariance = centered.t() @ centered / (len(rows) - 1)
            factors.append(torch.linalg.cholesky(covariance + floor**2 * torch.eye(len(covariance)).to(covariance)))
            means.append(rows.mean(0).reshape(x.shape[1:]))
        return cls(torch.stack(means).to(x), torch.stack(factors).to(x))

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.mean)

    def initial(self, labels: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw one point for each label; a label of -1 stands for any class."""
        any_class = draw_integers(self.n_classes, labels.shape, generator=generator, device=labels.device)
        y = torch.where(labels < 0, any_class, labels)
        mean = self.mean[y]
        noise = draw_normal(mean.flatten(1), generator=generator)
        moved = torch.empty_like(noise)
        for k in y.unique().tolist():
            rows = y == k
            moved[rows] = noise[rows] @ self.factor[k].t()
        return mean + moved.reshape(mean.shape)
