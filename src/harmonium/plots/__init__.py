"""Pictures of what a model learned. Every function returns a matplotlib `Figure`; `write_report` makes a whole page."""

from harmonium.plots.comparison import write_comparison
from harmonium.plots.curves import curves
from harmonium.plots.filters import filters, weight_heatmap
from harmonium.plots.grids import (
    chains_over_time,
    inpainting,
    reconstructions,
    sample_grid,
    save_grid,
)
from harmonium.plots.landscape import density_2d, free_energy_landscape, samples_2d
from harmonium.plots.partition import log_z_between_bounds
from harmonium.plots.report import write_panels, write_report
from harmonium.plots.scores import free_energy_histograms, reliability_diagram, score_histograms
from harmonium.plots.weights import activation_histogram, mean_comparison, singular_values, weight_histogram
from harmonium.runs.shades import limits_of

__all__ = [
    "activation_histogram",
    "chains_over_time",
    "curves",
    "density_2d",
    "filters",
    "free_energy_histograms",
    "free_energy_landscape",
    "inpainting",
    "limits_of",
    "log_z_between_bounds",
    "mean_comparison",
    "reconstructions",
    "reliability_diagram",
    "sample_grid",
    "samples_2d",
    "save_grid",
    "score_histograms",
    "singular_values",
    "weight_heatmap",
    "weight_histogram",
    "write_comparison",
    "write_panels",
    "write_report",
]
