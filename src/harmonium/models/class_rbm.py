"""The restricted Boltzmann machine that classifies."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from harmonium.couplings import Bias, Dense
from harmonium.models.machine import BoltzmannMachine
from harmonium.models.network_step import NetworkStep, to_network
from harmonium.types import Values
from harmonium.units import Categorical, Units
from harmonium.units.base import require_units


class ClassRBM(BoltzmannMachine):
    """An RBM whose visible layer is data x beside a label y: `E(x, y, h) = -xᵀWh - yᵀUh - bᵀx - cᵀh - dᵀy - log μ`.

    The label is a one-hot vector, so that `p(y | x) = softmax_y(d_y + Σ_j A(c_j + U_yj + xᵀW_j))` is exact (Larochelle
    and Bengio 2008, eq. 2). `Hybrid` trains it: as a classifier, as a joint density, or anything between. A state names
    the layers "visible", "label" and "hidden"; labels are class numbers, -1 where they are not known.

    >>> machine = ClassRBM(Bernoulli(64), Bernoulli(100), 10)
    >>> machine.predict_proba(torch.zeros(5, 64)).shape
    torch.Size([5, 10])
    >>> sample(machine, 4, n_steps=10, given={"label": torch.tensor(7)}).shape
    torch.Size([4, 64])
    """

    def __init__(
        self, visible: Units, hidden: Units, n_classes: int, *, generator: torch.Generator | None = None
    ) -> None:
        if n_classes < 2:
            raise ValueError(f"`n_classes` must be at least 2. Got {n_classes}. Without classes use RBM.")
        require_units(visible=visible, hidden=hidden)
        label = Categorical(1, n_classes)
        super().__init__(
            {"visible": visible, "label": label, "hidden": hidden},
            [
                (("visible", "hidden"), Dense(visible.shape, hidden.shape, generator=generator)),
                (("label", "hidden"), Dense(label.shape, hidden.shape, generator=generator)),
                (("visible",), Bias(visible.shape)),
                (("label",), Bias(label.shape)),
                (("hidden",), Bias(hidden.shape)),
            ],
        )
        self.n_classes = n_classes

    @property
    def weight(self) -> Tensor:
        """The weights between data and hidden units, W."""
        return self.couplings[0].weight  # type: ignore[return-value]

    @property
    def label_weight(self) -> Tensor:
        """The weights between labels and hidden units, U, one row a class."""
        return self.couplings[1].weight  # type: ignore[return-value]

    @torch.no_grad()
    def predict_proba(self, x: Values | Mapping[str, Values]) -> Tensor:
        """Return `p(y | x)`, exactly, `(*batch, n_classes)`, of data checked for their support."""
        state = self.state(x)
        for name in set(state) - {"label"}:
            self.layer(name).check_support(state[name], name)
        return self.distribution("label", state).squeeze(-2)

    def classify(self, x: Values | Mapping[str, Values]) -> Tensor:
        """Return the most probable class of each sample."""
        return self.predict_proba(x).argmax(-1)

    def to_network(self, n_classes: int | None = None) -> nn.Sequential:
        """Return an ordinary network that starts near this classifier: hidden means, then `d + U h`.

        `h = mean(c + Σ_y p_y U_y + Wᵀx)` with p the law of the label under its bias; to first order in U the outputs
        are then the exact `log p(y | x)` up to a constant.
        """
        if n_classes not in (None, self.n_classes):
            raise ValueError(f"This machine has {self.n_classes} classes. Got n_classes={n_classes}. Leave it out.")
        bias = self.graph.biases["label"].bias.detach()
        hidden_bias = self.field("hidden", {"label": bias.softmax(-1)}, partial=True).detach()
        step = NetworkStep(self.layer("visible"), self.terms[0][1], hidden_bias, self.layer("hidden"))
        return to_network([step], self.n_classes, weight=self.label_weight, bias=bias.flatten())
