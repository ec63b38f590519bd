"""The sections of a report on a joint model: samples of each class, calibration, outliers."""

from __future__ import annotations

import torch

from harmonium.evaluation.classify.calibration import reliability
from harmonium.evaluation.outlier_scores import outlier_scores
from harmonium.models import JEM
from harmonium.plots.grids import sample_grid
from harmonium.plots.page import Picture, Section
from harmonium.plots.scores import reliability_diagram, score_histograms
from harmonium.plots.subject import Subject
from harmonium.runs import Run
from harmonium.runs.joint_scores import class_probabilities
from harmonium.runs.outliers import outliers
from harmonium.samplers import sample

_N_CLASSES, _N_EACH, _N_STEPS = 20, 8, 500
_SCORES = {
    "free_energy": "−F(x), the log density up to a constant",
    "slope": "−‖∂F/∂x‖, minus the length of the gradient",
    "confidence": "max p(y|x), the largest class probability",
}


def by_class(subject: Subject) -> Section | None:
    """Return samples of `p(x | y)`, one column for each class."""
    model = subject.model
    if not isinstance(model, JEM) or subject.image is None or model.n_classes is None:
        return None
    n = min(model.n_classes, _N_CLASSES)
    y = torch.arange(n).repeat(_N_EACH)
    n_steps = min(subject.n_steps, _N_STEPS)
    x = sample(
        model.given_class(y),
        len(y),
        sampler=subject.sampler,
        n_steps=n_steps,
        start=subject.start(len(y), y),
        generator=subject.generator,
    )
    share = (model.classify(x).cpu() == y).double().mean().item()
    figure = sample_grid(subject.shown(x), subject.image, n, limits=subject.limits)
    caption = (
        f"Chains of p(x | y), one column a class, {n_steps:,} steps from {subject.origin}. The model itself takes "
        f"{share:.0%} of them for their class."
    )
    return Section("Samples of each class", "Nothing was selected.", [Picture("classes", caption, figure, False, True)])


def calibration(subject: Subject) -> Section | None:
    """Return the reliability diagram of the held-out samples."""
    found = _held_out(subject)
    if found is None:
        return None
    name, x, y = found
    bins = reliability(class_probabilities(subject.model, x).cpu(), y)
    caption = (
        f"Of {len(y):,} {name} samples, by how sure the model is: on the diagonal it is right as often as it says."
    )
    return Section(
        "Calibration",
        "Do its probabilities mean what they say?",
        [Picture("reliability", caption, reliability_diagram(bins), False)],
    )


def told_apart(subject: Subject) -> Section | None:
    """Return histograms of three scores on held-out samples and on each set of outliers."""
    found = _held_out(subject)
    if found is None or not isinstance(subject.run, Run):
        return None
    name, x, _ = found
    generator = torch.Generator().manual_seed(subject.run.config.run.seed + 1)  # the outliers of the evaluation
    inside = outlier_scores(subject.model, x)
    pictures = []
    for other, values in outliers(subject.run, x, generator=generator).items():
        outside = outlier_scores(subject.model, values)
        for score, said in _SCORES.items():
            file = f"outliers-{other.replace(' ', '-')}-{score.replace('_', '-')}"
            caption = f"{said}, of {name} samples and of {other}."
            pictures.append(Picture(file, caption, score_histograms(inside[score], outside[score])))
    text = "A larger score means more like the data. AUROC 1 tells all apart, ½ is chance."
    return Section("Out of distribution", text, pictures)


def _held_out(subject: Subject) -> tuple[str, torch.Tensor, torch.Tensor] | None:
    """Return all held-out samples with their labels, if a joint model and labels are there."""
    if not isinstance(subject.model, JEM):
        return None
    like = next(subject.model.parameters())
    data = subject.data
    for name, x, y in (("test", data.test, data.test_labels), ("validation", data.valid, data.valid_labels)):
        if x is not None and y is not None:
            return name, x.to(like), y
    return None
