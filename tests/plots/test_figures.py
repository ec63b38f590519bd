"""Figures show what they are given: values in the pixels, points on the curves, numbers in the titles."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread
from torch import Tensor, nn

import harmonium as hm
from harmonium import plots
from harmonium.evaluation.baselines import gaussian_log_density
from harmonium.evaluation.classify.calibration import reliability
from harmonium.models import RatingRBM
from harmonium.models.data_weight import data_weight
from harmonium.plots.grids import BETWEEN, UNKNOWN, image_shape, mosaic
from harmonium.plots.landscape import N_GRID, mass_levels, plane_log_z
from harmonium.plots.panels import draw_picture
from harmonium.runs.panels import Histograms, Lines


class Standard(nn.Module):
    """A standard normal law in the plane, without its constant: log Z = log 2π."""

    def free_energy(self, x: Tensor) -> Tensor:
        return x.square().sum(-1) / 2


def rbm(generator: torch.Generator) -> hm.RBM:
    return hm.RBM(hm.Bernoulli(1, 4, 4), hm.Bernoulli(5), generator=generator)


def plane(generator: torch.Generator) -> hm.RBM:
    return hm.RBM(hm.Gaussian(2), hm.Bernoulli(3), generator=generator)


def points(n: int, generator: torch.Generator) -> Tensor:
    return torch.randn(n, 2, generator=generator)


# --- pictures --------------------------------------------------------------------------------------------------------
def test_mosaic_lays_images_row_by_row_with_gaps() -> None:
    x = torch.arange(3.0)[:, None].expand(3, 4) / 2
    sheet = mosaic(x, (2, 2), 2)
    assert sheet.shape == (5, 5, 3)
    assert sheet[0, 0].tolist() == [0, 0, 0] and sheet[1, 4].tolist() == [0.5] * 3 and sheet[3, 0].tolist() == [1] * 3
    torch.testing.assert_close(sheet[0, 2], torch.tensor(BETWEEN))
    assert bool((sheet[3:, 2:] == 1).all()), "the place of a fourth image stays blank"


def test_mosaic_keeps_colors_and_marks_unknown_pixels() -> None:
    x = torch.zeros(1, 3, 1, 2)
    x[0, 0, 0, 0], x[0, :, 0, 1] = 1.0, math.nan
    sheet = mosaic(x, (3, 1, 2), 1)
    assert sheet[0, 0].tolist() == [1, 0, 0]
    torch.testing.assert_close(sheet[0, 1], torch.tensor(UNKNOWN))


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([0.0, 1.0], (0.0, 1.0)),
        ([0.2, 0.3], (0.0, 1.0)),
        ([-1.0, 1.0], (-1.0, 1.0)),
        ([0.0, 3.0, 16.0], (0.0, 16.0)),
        ([math.nan, 0.0, 1.0], (0.0, 1.0)),
        ([7.5, 7.5], (7.0, 8.0)),
    ],
)
def test_limits_follow_the_kind_of_values(values: list[float], limits: tuple[float, float]) -> None:
    assert plots.limits_of(torch.tensor(values)) == limits


def test_limits_of_real_values_leave_out_the_outliers() -> None:
    x = torch.cat([torch.linspace(-2, 2, 999), torch.tensor([500.0])])
    low, high = plots.limits_of(x)
    assert -2.0 <= low < -1.9 and 1.9 < high <= 2.0


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="must be that of an image"):
        image_shape((2, 8, 8))
    with pytest.raises(ValueError, match="must hold images of shape"):
        plots.sample_grid(torch.zeros(3, 63), (8, 8))
    with pytest.raises(ValueError, match="must name the 2 times"):
        plots.chains_over_time(torch.zeros(2, 3, 4), (2, 2), steps=[0])
    with pytest.raises(ValueError, match="same number of images"):
        plots.reconstructions(torch.zeros(2, 4), torch.zeros(3, 4), (2, 2))


def test_grids_name_their_rows_and_columns() -> None:
    states = torch.zeros(3, 2, 4)
    states[2, 1] = 1.0
    figure = plots.chains_over_time(states, (2, 2), steps=[0, 10, 1000])
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["0", "10", "1,000"]
    sheet = np.asarray(figure.axes[0].images[0].get_array())
    assert sheet[3:, 6:].min() == 1 and sheet[:2].min() == 0, "the second chain, the third time"
    x = torch.zeros(3, 4)
    rows = [label.get_text() for label in plots.inpainting(x, x, torch.stack([x, x]), (2, 2)).axes[0].get_yticklabels()]
    assert rows == ["original", "given", "filled in 1", "filled in 2"]
    rows = [label.get_text() for label in plots.reconstructions(x, x, (2, 2)).axes[0].get_yticklabels()]
    assert rows == ["data", "reconstruction"]


def test_save_grid_writes_the_pixels(tmp_path: Path) -> None:
    x = torch.tensor([[0.0, 1.0, 1.0, 0.0]])
    plots.save_grid(x, (2, 2), tmp_path / "grid.png")
    image = imread(tmp_path / "grid.png")[..., 0]
    half = len(image) // 2
    assert image.shape == (800, 800)
    assert image[:half, :half].max() == 0 and image[:half, half:].min() == 1 and image[half:, half:].max() == 0


# --- weights ---------------------------------------------------------------------------------------------------------
def test_filters_are_sorted_and_share_one_scale(generator: torch.Generator) -> None:
    model = rbm(generator)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([0.0, 3.0, -2.9, 0.1, 1.0]).expand(16, 5))
    figure = plots.filters(model, n=3)
    assert figure.axes[0].get_title(loc="left") == "The 3 largest of 5 filters"
    sheet = np.asarray(figure.axes[0].images[0].get_array())
    red, blue = (sheet[0, column] for column in (0, 5))
    assert red[0] > 2 * red[2] and blue[2] > 2 * blue[0]
    weaker = sheet[0, 10]
    assert red[2] < weaker[2] < weaker[0]


def test_filters_of_flat_colored_and_convolutional_models(generator: torch.Generator) -> None:
    flat = hm.RBM(hm.Bernoulli(16), hm.Bernoulli(2), generator=generator)
    with pytest.raises(ValueError, match="must be that of an image"):
        plots.filters(flat)
    assert len(plots.filters(flat, shape=(4, 4)).axes[0].images) == 1
    colored = hm.RBM(hm.Bernoulli(3, 2, 2), hm.Bernoulli(2), generator=generator)
    assert np.asarray(plots.filters(colored).axes[0].images[0].get_array()).shape == (2, 5, 3)
    conv = hm.RBM(hm.Bernoulli(2, 4, 4), hm.Bernoulli(3, 2, 2), hm.Conv2d(2, 3, kernel=3, generator=generator))
    assert "All 6 filters" in plots.filters(conv).axes[0].get_title(loc="left"), "one for each pair of channels"
    with pytest.raises(TypeError, match="Got Standard"):
        plots.filters(Standard())


def test_data_weight_is_visible_by_hidden_in_either_order() -> None:
    units = {"x": hm.Bernoulli(3), "h": hm.Bernoulli(2)}
    straight = hm.BoltzmannMachine(units, [(("x", "h"), hm.Dense(3, 2))])
    turned = hm.BoltzmannMachine(units, [(("h", "x"), hm.Dense(2, 3))])
    assert data_weight(straight).shape == data_weight(turned).shape == (3, 2)


def test_heat_map_names_its_rows(generator: torch.Generator) -> None:
    names = [f"value {i}" for i in range(16)]
    figure = plots.weight_heatmap(rbm(generator), names)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == names


def test_singular_values_and_the_random_edge(generator: torch.Generator) -> None:
    model = rbm(generator)
    with torch.no_grad():
        model.weight.zero_()
        model.weight[:5].copy_(torch.diag(torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0])))
    curve, edge = plots.singular_values(model).axes[0].lines
    np.testing.assert_allclose(np.asarray(curve.get_ydata()), [5, 4, 3, 2, 1], rtol=1e-6)
    assert float(np.asarray(edge.get_ydata())[0]) == pytest.approx(math.sqrt(55 / 80) * (4 + math.sqrt(5)))


def test_histograms_have_area_one_and_a_legend(generator: torch.Generator) -> None:
    model = rbm(generator)
    x = (torch.rand(20, 1, 4, 4, generator=generator) > 0.5).float()
    for figure, names in (
        (plots.weight_histogram(model), ["weight", "visible bias", "hidden bias"]),
        (plots.activation_histogram(model, x), ["every unit, every sample", "mean of each unit"]),
    ):
        assert legend_of(figure) == names
        for patch in figure.axes[0].patches:
            assert area(np.asarray(patch.get_path().vertices)) == pytest.approx(1.0, rel=1e-5)
    with pytest.raises(TypeError, match="hidden layers"):
        plots.activation_histogram(Standard(), x)


def test_parameters_and_activations_go_by_what_they_are() -> None:
    """A label is no hidden layer, and what is inside a coupling is not shown to a reader."""
    machine = hm.ClassRBM(hm.Bernoulli(4), hm.Bernoulli(3), 2)
    with torch.no_grad():
        machine.couplings[4].bias.fill_(50.0)  # all hidden units are on, and p(y | x) = 1/2
        machine.couplings[1].weight.zero_()
    bars = plots.activation_histogram(machine, torch.zeros(2, 4)).axes[0].patches[0]
    corners = np.asarray(bars.get_path().vertices)
    assert corners[corners[:, 1] > 0, 0].min() > 0.9
    ratings = RatingRBM(2, 3, hidden=hm.Gaussian(2))
    assert legend_of(plots.weight_histogram(ratings)) == ["weight", "ratings bias", "hidden bias"]
    gates = hm.SubspaceRBM(hm.Bernoulli(4), 2)
    assert legend_of(plots.weight_histogram(gates)) == ["weight", "visible bias", "gate bias", "subspace bias"]
    transformed = hm.GatedRBM(hm.Bernoulli(4), hm.Bernoulli(4), hm.Bernoulli(3), n_factors=2)
    assert legend_of(plots.weight_histogram(transformed))[-2:] == ["output bias", "hidden bias"]


def test_levels_are_named_and_epochs_whole() -> None:
    lines = Lines("lines", "Lines.", [1], {"valid": [1.0]}, x_label="epoch", levels={"the means": 1.5, "no": 1.2})
    figure = draw_picture(lines).figure
    assert isinstance(figure, Figure) and legend_of(figure) == ["valid", "the means", "no"]
    for axes in (figure.axes[0], plots.curves([{"epoch": 1, "r_hat": 1.2}]).axes[0]):
        assert all(float(tick).is_integer() for tick in axes.get_xticks())


def test_means_of_equal_samples_lie_on_the_diagonal() -> None:
    x = torch.tensor([[0.0, 2.0], [1.0, 4.0]])
    axes = plots.mean_comparison(x, x).axes[0]
    np.testing.assert_allclose(np.asarray(axes.lines[1].get_xdata(), dtype=float), [0.5, 3.0])
    np.testing.assert_allclose(np.asarray(axes.lines[1].get_ydata(), dtype=float), [0.5, 3.0])


# --- curves ----------------------------------------------------------------------------------------------------------
RECORDS = [
    {"epoch": e, "reconstruction": 1 / e, "log_likelihood": -10.0 + e, "log_z_error": 0.5, "r_hat": math.nan}
    for e in range(1, 5)
]


def test_curves_draw_values_and_bands() -> None:
    figure = plots.curves(RECORDS)
    likelihood, reconstruction = figure.axes
    assert likelihood.get_ylabel() == "nats a sample" and likelihood.get_xlabel() == "epoch"
    np.testing.assert_allclose(likelihood.lines[0].get_ydata(), [-9, -8, -7, -6])
    band = likelihood.collections[0].get_paths()[0].vertices
    assert np.asarray(band)[:, 1].min() == -10 and np.asarray(band)[:, 1].max() == -5, "two standard errors"
    assert not reconstruction.collections, "no error, no band"


def test_curves_use_their_own_error_and_leave_out_what_is_missing() -> None:
    records = [{"epoch": 1, "loss": 1.0, "loss_error": 0.1}, {"epoch": 2, "loss": None}, {"epoch": 3, "loss": math.inf}]
    axes = plots.curves(records, ["loss"]).axes[0]
    assert list(np.asarray(axes.lines[0].get_xdata())) == [1]
    assert len(axes.collections) == 1
    with pytest.raises(ValueError, match="No record has a finite 'r_hat'"):
        plots.curves(RECORDS, ["r_hat"])
    with pytest.raises(ValueError, match="no metric to draw"):
        plots.curves([])


# --- the plane -------------------------------------------------------------------------------------------------------
def test_density_of_a_known_law(generator: torch.Generator) -> None:
    x = points(2000, generator)
    assert plane_log_z(Standard(), x).value == pytest.approx(math.log(2 * math.pi), abs=1e-3)
    shades = plots.density_2d(Standard(), x).axes[0].collections[0]
    assert shades.get_clim()[1] == pytest.approx(1 / (2 * math.pi), rel=0.01)
    wrong = plots.density_2d(Standard(), x, log_z=0.0).axes[0].collections[0]
    assert wrong.get_clim()[1] == pytest.approx(1.0, rel=0.01)


def test_lines_enclose_the_mass_they_say() -> None:
    side = torch.linspace(-6, 6, N_GRID, dtype=torch.float64)
    density = torch.exp(-(side[:, None].square() + side.square()) / 2) / (2 * math.pi)
    levels = mass_levels(density, (12 / (N_GRID - 1)) ** 2)
    # in the plane P(density > l) = 1 - 2πl for a standard normal law
    assert levels == pytest.approx([share / (2 * math.pi) for share in (0.01, 0.1, 0.5)], rel=0.05)


def test_density_of_a_machine_shows_sigma(generator: torch.Generator) -> None:
    x = points(100, generator)
    axes = plots.density_2d(plane(generator), x).axes[0]
    assert [text.get_text() for text in axes.texts] == ["σ = (1, 1)"]
    assert not plots.density_2d(Standard(), x).axes[0].texts
    assert axes.get_xlim()[0] < x[:, 0].min() and axes.get_xlim()[1] > x[:, 0].max()
    with pytest.raises(ValueError, match=r"points in the plane"):
        plots.density_2d(Standard(), torch.zeros(4, 3))


def test_landscape_and_samples(generator: torch.Generator) -> None:
    x = points(300, generator)
    low, high = plots.free_energy_landscape(Standard(), x).axes[0].collections[0].get_clim()
    assert 0 <= low < 0.01 and high > low + 3
    left, right = plots.samples_2d(x, x + 1).axes
    assert left.get_xlim() == right.get_xlim() and left.get_title(loc="left") == "Data"


def test_gaussian_log_density_is_the_closed_form(generator: torch.Generator) -> None:
    x = points(50, generator) @ torch.tensor([[2.0, 0.5], [0.0, 1.0]]) + 3
    law = torch.distributions.MultivariateNormal(x.double().mean(0), torch.cov(x.double().t()))
    torch.testing.assert_close(gaussian_log_density(x, x), law.log_prob(x.double()))


# --- scores ----------------------------------------------------------------------------------------------------------
def test_free_energy_histograms_name_sets_and_means() -> None:
    sets = {"train": torch.zeros(10, 2), "noise": torch.full((10, 2), 2.0)}
    figure = plots.free_energy_histograms(sets, Standard())
    assert legend_of(figure) == ["train, mean 0.0", "noise, mean 4.0"]
    assert "nats" in figure.axes[0].get_xlabel()


def test_score_histograms_and_reliability_say_their_numbers() -> None:
    apart = plots.score_histograms(torch.tensor([2.0, 3.0]), torch.tensor([0.0, 1.0]))
    same = plots.score_histograms(torch.tensor([2.0, 3.0]), torch.tensor([2.0, 3.0]))
    assert "AUROC 1.000" in apart.axes[0].get_title(loc="left")
    assert "AUROC 0.500" in same.axes[0].get_title(loc="left")
    bins = reliability(torch.tensor([[0.75, 0.25]] * 4), torch.tensor([0, 0, 0, 1]))
    figure = plots.reliability_diagram(bins)
    assert "0.000" in figure.axes[0].get_title(loc="left")
    assert [bar.get_height() for bar in figure.axes[0].patches] == [0.75]


# --- the canvas ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "draw",
    [
        lambda g: plots.filters(rbm(g)),
        lambda g: plots.sample_grid(torch.zeros(2, 4), (2, 2)),
        lambda g: plots.curves(RECORDS),
        lambda g: plots.density_2d(Standard(), points(20, g)),
    ],
)
def test_figures_are_off_the_global_state(
    draw: Callable[[torch.Generator], Figure], generator: torch.Generator
) -> None:
    before = pyplot.get_fignums()
    figure = draw(generator)
    assert isinstance(figure.canvas, FigureCanvasAgg)
    assert pyplot.get_fignums() == before


def legend_of(figure: Figure) -> list[str]:
    legend = figure.axes[0].get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def area(vertices: np.ndarray) -> float:
    """The area of a polygon, by the shoelace formula."""
    x, y = vertices[:, 0], vertices[:, 1]
    return abs(float(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) / 2


def test_inpainting_keeps_an_image_in_its_column() -> None:
    """More images than fit side by side go on in blocks of three rows, each with its names."""
    from harmonium.plots.grids import inpainting

    n = 20
    x = torch.arange(n).float().reshape(n, 1, 1, 1).expand(n, 1, 2, 2) / n
    figure = inpainting(x, x, x, (1, 2, 2))
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["original", "given", "filled in"] * 2
    sheet = figure.axes[0].images[0].get_array()
    assert sheet.shape[:2] == (6 * 3 - 1, 16 * 3 - 1)
    for row in range(3):
        assert [round(float(sheet[3 * row, 3 * i, 0]) * n) for i in range(16)] == list(range(16))
        assert [round(float(sheet[9 + 3 * row, 3 * i, 0]) * n) for i in range(4)] == list(range(16, 20))


def test_every_series_is_drawn_however_many_there_are() -> None:
    names = [f"rated {i}" for i in range(9)]
    many = Histograms("many", "", {name: torch.randn(20) for name in names})
    assert legend_of(draw_picture(many).figure) == names
    lines = Lines("many", "", [0, 1], {name: [0.0, 1.0] for name in names})
    assert legend_of(draw_picture(lines).figure) == names
