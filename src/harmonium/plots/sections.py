"""The sections of a report: each looks at a subject and returns what applies to it, or None."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from harmonium.evaluation.baselines import gaussian_log_density
from harmonium.evaluation.free_energies import free_energies
from harmonium.models.data_weight import data_weight
from harmonium.plots.curves import curves, panels_of
from harmonium.plots.filters import filters, weight_heatmap
from harmonium.plots.grids import chains_over_time, inpainting, reconstructions, sample_grid
from harmonium.plots.landscape import density_2d, free_energy_landscape, plane_log_z, samples_2d
from harmonium.plots.page import Picture, Section
from harmonium.plots.scores import free_energy_histograms
from harmonium.plots.weights import activation_histogram, mean_comparison, singular_values, weight_histogram
from harmonium.runs.likelihood_words import samples_sentences
from harmonium.runs.metric_words import CAPTIONS
from harmonium.runs.shades import Limits, limits_of
from harmonium.runs.subject import Subject
from harmonium.runs.words import number
from harmonium.samplers import sample

_N_SHOWN = 16


def learning(subject: Subject) -> Section | None:
    """Return the curves of the metrics."""
    return learning_curves(subject.trained.records)


def learning_curves(records: Sequence[Mapping[str, Any]]) -> Section | None:
    """Return a chart for each metric of the epochs that has a caption."""
    pictures = [
        Picture(f"curve-{panel[0].replace('_', '-')}", CAPTIONS[panel[0]], curves(records, [panel]))
        for panel in panels_of(records)
    ]
    return Section("Learning", "What was watched at the end of each epoch.", pictures) if pictures else None


def features(subject: Subject) -> Section | None:
    """Return the filters of an image model, or the weights of a table as a heat map."""
    try:
        weight = data_weight(subject.model)
    except TypeError:
        return None
    if subject.image is not None:
        figure = filters(subject.model, shape=subject.image)
        caption = "The weights between the image and one hidden unit each, all on one scale."
        return Section(
            "Filters", "What each hidden unit looks for.", [Picture("filters", caption, figure, False, True)]
        )
    if weight.ndim != 2:
        return None
    figure = weight_heatmap(subject.model, value_names(subject))
    caption = "One row for each value of a sample, one column for each hidden unit."
    return Section("Weights", "What each hidden unit looks for.", [Picture("heat-map", caption, figure, False, True)])


def chains(subject: Subject) -> Section:
    """Return samples: chains over time and their ends."""
    steps, states = subject.chains
    text = (
        f"Independent chains, started from {subject.trained.origin}, after {steps[-1]:,} steps. Nothing was selected."
    )
    ends = states[-1]
    if subject.trained.plane:
        return Section("Samples", text, [_points(subject, ends)])
    if subject.image is None:
        caption = "A model of the data puts every value on the diagonal."
        figure = mean_comparison(subject.train, ends)
        return Section("Samples", text, [Picture("samples", caption, figure)])
    n_times, n_chains = len(steps), 6
    images = subject.shown(states[:, :n_chains].flatten(end_dim=1)).reshape(n_times, n_chains, -1)
    options: dict[str, Any] = {"limits": shown_limits(subject)}
    over_time = chains_over_time(images, subject.image, steps=steps, **options)
    grid = sample_grid(subject.shown(ends), subject.image, 20, **options)
    return Section(
        "Samples",
        text,
        [
            Picture("samples", "The ends of all chains: drawn values, not their means.", grid, False, True),
            Picture("chains", "One chain a row: chains that mix forget where they were.", over_time, False, True),
        ],
    )


@torch.no_grad()
def rebuilt(subject: Subject) -> Section | None:
    """Return reconstructions of images."""
    machine = subject.machine
    if machine is None or subject.image is None or not subject.has_free_energy or len(machine.units) < 2:
        return None
    name, x = subject.held_out
    state = machine.infer(x[:_N_SHOWN])
    x_hat = machine.mean(machine.data_layer, state)
    figure = reconstructions(
        subject.shown(x[:_N_SHOWN]), subject.shown(x_hat), subject.image, limits=shown_limits(subject)
    )
    caption = f"Above: {name} samples. Below: the mean of the visible units given the mean of the hidden ones."
    return Section("Reconstructions", "Up and down once.", [Picture("reconstructions", caption, figure, False, True)])


def filled_in(subject: Subject) -> Section | None:
    """Return images whose left half the model filled in."""
    if subject.image is None:
        return None
    name, x = subject.held_out
    x = x[:_N_SHOWN]
    given = x.reshape(len(x), *subject.image).clone()
    given[..., : subject.image[-1] // 2] = math.nan
    masked = given.reshape(x.shape)
    n_steps = min(subject.n_steps, 500)
    draws = [
        sample(
            subject.model,
            len(x),
            sampler=subject.trained.sampler,
            n_steps=n_steps,
            given=masked,
            start=subject.start(len(x)),
            generator=subject.generator,
        )
        for _ in range(3)
    ]
    figure = inpainting(
        subject.shown(x).flatten(1),
        subject.shown(masked).flatten(1),
        torch.stack([subject.shown(draw).flatten(1) for draw in draws]),
        subject.image,
        limits=shown_limits(subject),
    )
    caption = f"The left half of {name} samples is drawn three times, given the right half, in {n_steps:,} steps."
    return Section(
        "In-painting",
        "What the model expects where it sees nothing.",
        [Picture("inpainting", caption, figure, False, True)],
    )


def density(subject: Subject) -> Section | None:
    """Return the density over points in the plane, beside a single Gaussian, and the test of the samples."""
    if not subject.trained.plane or not subject.has_free_energy:
        return None
    name, x = subject.held_out
    log_z = plane_log_z(subject.model, subject.train)
    own = -free_energies(subject.model, x) - log_z.value
    gap = own - gaussian_log_density(x, subject.train)
    error = (gap.std() / math.sqrt(len(gap))).item()
    text = (
        f"Log-likelihood of {len(x):,} {name} samples: {number(own.mean().item(), 3)} nats; of a single Gaussian with "
        f"the mean and covariance of the training data: {number((own - gap).mean().item(), 3)} nats. The margin is "
        f"{number(gap.mean().item(), 3)} ± {number(error, 3)} nats, its standard error over the "
        f"samples. log Z: {log_z.kind}."
    )
    pictures = [
        Picture(
            "density",
            "exp(−F − log Z) with the training data; the lines enclose 50, 90 and 99 % of the mass.",
            density_2d(subject.model, subject.train, log_z),
            False,
        ),
        Picture(
            "landscape",
            "Low where the model expects data; cut 12 nats above its lowest.",
            free_energy_landscape(subject.model, subject.train),
            False,
        ),
    ]
    return Section("Density", text, pictures)


def energies(subject: Subject) -> Section | None:
    """Return the free energies of training, held-out and shuffled samples."""
    if not subject.has_free_energy:
        return None
    name, x = subject.held_out
    sets = {"training": subject.train} | ({} if name == "training" else {name: x}) | {"noise": subject.noise()}
    caption = (
        "Lower is more probable. Noise has the values of the training samples, each dealt anew among them: "
        "what sets it apart is what the model learned beyond single values."
    )
    picture = Picture("free-energies", caption, free_energy_histograms(sets, subject.model))
    return Section("Free energies", "What the model says of data and of what is not.", [picture])


def parameters(subject: Subject) -> Section | None:
    """Return histograms of parameters and activations, and the singular values of W."""
    if subject.machine is None:
        return None
    pictures = [Picture("parameters", "Weights and biases.", weight_histogram(subject.model))]
    if subject.has_free_energy and len(subject.machine.units) > 1:
        caption = "Units that answer 0 or 1 to everything carry no information."
        pictures.append(Picture("activations", caption, activation_histogram(subject.model, subject.train)))
    try:
        figure = singular_values(subject.model)
    except TypeError:
        pass
    else:
        caption = "Directions above the line stand out from a random matrix with entries of the same size."
        pictures.append(Picture("singular-values", caption, figure))
    return Section("Weights and activations", "How the parameters are spread.", pictures)


SECTIONS: dict[str, Callable[[Subject], Section | None]] = {
    "learning": learning,
    "samples": chains,
    "density": density,
    "filters": features,
    "reconstructions": rebuilt,
    "inpainting": filled_in,
    "energies": energies,
    "parameters": parameters,
}
"""The sections that a kind of model can name; each returns None where it does not apply."""


def shown_limits(subject: Subject) -> Limits:
    """Return what is black and what is white in images of a model: as in its training data."""
    return limits_of(subject.shown(subject.train))


def value_names(subject: Subject) -> list[str]:
    """Return a name for each value of a sample: that of its column, with the level of a category, or its number."""
    columns = subject.data.columns
    if not columns:
        return [f"x{i + 1}" for i in range(math.prod(subject.trained.shape))]
    return [
        column.name if column.width == 1 else f"{column.name} = {level}"
        for column in columns
        for level in (column.levels if column.width > 1 else (None,) * column.width)
    ]


def _points(subject: Subject, ends: Tensor) -> Picture:
    name, x = subject.held_out
    n = min(len(x), len(ends))
    tests = (subject.trained.scores or {}).get("samples")
    said = " ".join(samples_sentences(tests)) if tests else "How far they agree, an evaluation of the run says."
    caption = f"{name.capitalize()} samples and samples of the model. {said}"
    return Picture("samples", caption, samples_2d(x[:n], ends[:n]), wide=True)
