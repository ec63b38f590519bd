"""How the parameters and activations are spread: histograms and singular values."""

from __future__ import annotations

import itertools
import math

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from harmonium.models import BoltzmannMachine
from harmonium.models.data_weight import data_weight
from harmonium.models.layers import paired_layers
from harmonium.plots.style import BLUE, COLORS, GRAY, ORANGE, bars, chart, edges_of, legend, new_figure


def weight_histogram(model: nn.Module) -> Figure:
    """Return the histograms of the parameters of a model, by name."""
    groups = _parameters(model)
    if not groups:
        raise ValueError(f"{type(model).__name__} has no parameters to show.")
    figure = new_figure()
    axes = chart(figure, 1, 1, 1, title="Parameters", x="value", y="density")
    edges = edges_of(list(groups.values()))
    for color, (name, values) in zip(itertools.cycle(COLORS), groups.items()):
        bars(axes, values, edges, color, name)
    legend(axes)
    return figure


def singular_values(model: nn.Module) -> Figure:
    """Return the singular values of W in falling order.

    The line is the largest that a random matrix of the same entries would have, `s(√n + √m)` with s the root of their
    mean square (Marchenko and Pastur 1967): what lies above it has been learned.
    """
    weight = data_weight(model).flatten(1).double()
    values = torch.linalg.svdvals(weight)
    edge = weight.square().mean().sqrt().item() * sum(math.sqrt(side) for side in weight.shape)
    figure = new_figure()
    axes = chart(figure, 1, 1, 1, title="Singular values of W", x="rank", y="singular value")
    axes.plot(range(1, len(values) + 1), values.tolist(), color=BLUE, marker="o", markersize=2.5, linewidth=1.0)
    axes.axhline(edge, color=GRAY, linestyle="--", linewidth=1.0, label="edge of a random matrix")
    axes.set_ylim(bottom=0)
    legend(axes)
    return figure


@torch.no_grad()
def activation_histogram(model: nn.Module, x: Tensor) -> Figure:
    """Return the histograms of `E[h | x]`: of every unit on every sample, and of each unit's mean over the samples.

    h is the first layer that is neither data nor a label.
    """
    if not isinstance(model, BoltzmannMachine) or len(model.units) < 2:
        raise TypeError(f"Activations need a machine with hidden layers. Got {type(model).__name__}.")
    hidden = _hidden_layer(model)
    activity = model.infer(x)[hidden].flatten(1).double()
    low, high = activity.min().item(), activity.max().item()
    bounds = model.layer(hidden).bounds()
    low, high = (b if math.isfinite(b) else v for b, v in zip(bounds, (low, high), strict=True))
    edges = torch.linspace(low, high if high > low else low + 1.0, 26)
    figure = new_figure()
    axes = chart(figure, 1, 1, 1, title="Hidden activations", x="E[h | x]", y="density")
    bars(axes, activity.flatten(), edges, BLUE, "every unit, every sample")
    bars(axes, activity.mean(0), edges, ORANGE, "mean of each unit")
    legend(axes)
    return figure


def mean_comparison(x: Tensor, samples: Tensor) -> Figure:
    """Return the mean of each value over samples of the model against its mean over the data, with standard errors."""
    data, drawn = x.flatten(1).double().cpu(), samples.flatten(1).double().cpu()
    across, up = data.mean(0), drawn.mean(0)
    figure = new_figure(3.8, 3.8)
    axes = chart(figure, 1, 1, 1, title="Means of the values", x="data", y="samples of the model")
    ends = [min(across.min().item(), up.min().item()), max(across.max().item(), up.max().item())]
    axes.plot(ends, ends, color=GRAY, linestyle="--", linewidth=1.0)
    axes.errorbar(
        across.tolist(),
        up.tolist(),
        (drawn.std(0) / math.sqrt(len(drawn))).tolist(),
        (data.std(0) / math.sqrt(len(data))).tolist(),
        fmt="o",
        color=BLUE,
        markersize=3.5,
        elinewidth=0.8,
    )
    return figure


def _hidden_layer(model: BoltzmannMachine) -> str:
    """Return the name of the layer whose activations are shown."""
    others = [name for name in model.layers if name != model.data_layer]
    unlabeled = [name for name in others if name not in paired_layers(model)]
    return (unlabeled or others)[0]


def _parameters(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters as `weight`, `visible bias`, `hidden bias` … of a machine, or all together.

    A bias that other layers gate belongs to the last of its layers.
    """
    if not isinstance(model, BoltzmannMachine):
        flat = [p.detach().flatten() for p in model.parameters()]
        return {"all parameters": torch.cat(flat)} if flat else {}
    groups: dict[str, list[Tensor]] = {}
    for layers, coupling in model.terms:
        for kind, parameter in coupling.named_parameters():
            word = kind.rpartition(".")[2].replace("_", " ")
            name = f"{layers[-1]} {word}" if len(layers) == 1 or word == "bias" else word
            groups.setdefault(name, []).append(parameter.detach().flatten())
    return {name: torch.cat(values) for name, values in groups.items()}
