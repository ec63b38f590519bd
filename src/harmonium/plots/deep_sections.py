"""The sections of a report on a deep belief network: samples, what each depth knows, filters."""

from __future__ import annotations

import torch

from harmonium.models import DBN
from harmonium.plots.faces import image_rows
from harmonium.plots.filters import filters
from harmonium.plots.grids import sample_grid
from harmonium.plots.page import Picture, Section
from harmonium.plots.subject import N_CHAINS, Subject

_N_SHOWN = 16


def deep_samples(subject: Subject) -> Section | None:
    """Return images drawn from the top down."""
    dbn = subject.model
    if not isinstance(dbn, DBN) or subject.image is None:
        return None
    x = dbn.sample(N_CHAINS, n_steps=subject.n_steps, generator=subject.generator)
    figure = sample_grid(subject.shown(x), subject.image, 20, limits=subject.limits)
    text = (
        f"Independent chains of {subject.n_steps:,} Gibbs steps in the top machine, started from its biases alone, "
        "then down by means. Nothing was selected."
    )
    caption = "The means of the pixels given what was drawn at the top."
    return Section("Samples", text, [Picture("samples", caption, figure, False, True)])


@torch.no_grad()
def by_depth(subject: Subject) -> Section | None:
    """Return held-out images above their reconstructions from each depth."""
    dbn = subject.model
    if not isinstance(dbn, DBN) or subject.image is None:
        return None
    name, x = subject.held_out
    x = x[:_N_SHOWN]
    rows = {"data": x} | {f"depth {i}": dbn.reconstruct(x, i) for i in range(1, len(dbn) + 1)}
    figure = image_rows({label: subject.shown(images) for label, images in rows.items()})
    levels = " → ".join("×".join(map(str, shape)) for shape in dbn.shapes)
    caption = f"{name.capitalize()} images, and what is left of them after going up to each depth and down, by means."
    return Section(
        "Reconstructions",
        f"What each depth knows. The levels: {levels}.",
        [Picture("depths", caption, figure, False, True)],
    )


def first_filters(subject: Subject) -> Section | None:
    """Return the weights between the image and the first hidden layer."""
    dbn = subject.model
    if not isinstance(dbn, DBN) or subject.image is None:
        return None
    caption = "The weights between the image and one unit, or one channel, of the first hidden layer, all on one scale."
    figure = filters(dbn[0], shape=subject.image)
    return Section("Filters", "What the first layer looks for.", [Picture("filters", caption, figure, False, True)])
