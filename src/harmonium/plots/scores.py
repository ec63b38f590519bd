"""What the model says of data and of what is not data: free energies, scores, calibration."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from torch import Tensor

from harmonium.evaluation.classify.calibration import Reliability
from harmonium.evaluation.free_energies import free_energies
from harmonium.evaluation.ood import auroc, fpr95
from harmonium.plots.style import BLUE, COLORS, GRAY, ORANGE, bars, chart, edges_of, legend, new_figure
from harmonium.types import EnergyModel


def free_energy_histograms(data: Mapping[str, Tensor], model: EnergyModel) -> Figure:
    """Return the histograms of `F(x)` on each named set, with its mean: lower is more probable.

    Training far below test is over-fitting; noise that is not above both is a model that cannot tell.
    """
    values = {name: free_energies(model, x) for name, x in data.items()}
    figure = new_figure()
    axes = chart(figure, 1, 1, 1, title="Free energy", x="F(x) in nats", y="density")
    edges = edges_of(list(values.values()))
    for color, (name, free) in zip(COLORS, values.items(), strict=False):
        bars(axes, free, edges, color, f"{name}, mean {free.mean().item():,.1f}".replace("-", "−"))
    legend(axes)
    return figure


def score_histograms(scores_in: Tensor, scores_out: Tensor) -> Figure:
    """Return the histograms of a score on data and on what is not; a larger score means more like the data."""
    figure = new_figure()
    title = f"AUROC {auroc(scores_in, scores_out):.3f}, FPR at 95 % recall {fpr95(scores_in, scores_out):.3f}"
    axes = chart(figure, 1, 1, 1, title=title, x="score", y="density")
    edges = edges_of([scores_in, scores_out])
    bars(axes, scores_in, edges, BLUE, "in distribution")
    bars(axes, scores_out, edges, ORANGE, "out of distribution")
    legend(axes)
    return figure


def reliability_diagram(bins: Reliability) -> Figure:
    """Return accuracy over confidence (eqs. 3 and 4 of Guo et al. 2017): a calibrated model lies on the diagonal."""
    n = bins.count.double()
    error = ((n * (bins.accuracy - bins.confidence).abs()).sum() / n.sum()).item()
    figure = new_figure(3.6, 3.6)
    axes = chart(figure, 1, 1, 1, title=f"Expected calibration error {error:.3f}", x="confidence", y="accuracy")
    axes.bar(
        bins.lower.tolist(),
        bins.accuracy.tolist(),
        (bins.upper - bins.lower).tolist(),
        align="edge",
        color=BLUE,
        alpha=0.3,
        edgecolor=BLUE,
        linewidth=1.0,
    )
    spread = (bins.accuracy * (1 - bins.accuracy) / n).sqrt().tolist()
    axes.errorbar(
        bins.confidence.tolist(),
        bins.accuracy.tolist(),
        spread,
        fmt="o",
        color=BLUE,
        markersize=3.5,
        elinewidth=1.0,
        label="± 1 standard error",
    )
    axes.plot([0, 1], [0, 1], color=GRAY, linestyle="--", linewidth=1.0, label="calibrated")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    legend(axes, loc="upper left")
    return figure
