"""What is scored and shown of every model that classifies."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from harmonium.data import Data
from harmonium.evaluation.classify.accuracy import accuracy, class_probabilities
from harmonium.evaluation.classify.calibration import expected_calibration_error, reliability
from harmonium.runs.panels import Calibration, Heatmap, Panel
from harmonium.runs.subject import Subject
from harmonium.runs.trained import Trained
from harmonium.runs.values import SPLITS
from harmonium.runs.words import SPLITS as IN_WORDS


def class_labels(data: Data, kind: str) -> Tensor:
    """Return the labels of the training data, or say that there are none."""
    if data.train_labels is None:
        raise ValueError(f"A {kind} learns classes, and {data.name} has no labels. Choose --model rbm.")
    return data.train_labels


def held_out_labels(trained: Trained) -> tuple[str, Tensor, Tensor] | None:
    """Return all held-out samples with their classes and the name of their split, if there are any."""
    for split in ("test", "valid"):
        if (found := trained.labeled(split)) is not None:
            return IN_WORDS[split], *found
    return None


def class_scores(trained: Trained) -> dict[str, Any]:
    """Return the accuracy on each split that has labels, and the calibration error on the last one."""
    shares: dict[str, Any] = {}
    for split in SPLITS:
        if (found := trained.labeled(split)) is not None:
            x, y = found
            probabilities = class_probabilities(trained.model, x).cpu()
            shares[split] = accuracy(probabilities, y)
            error = {"value": expected_calibration_error(probabilities, y), "split": split, "n": len(y)}
    return {"accuracy": shares, "calibration_error": error}


def calibration(subject: Subject) -> Panel | None:
    """Return the reliability diagram of the held-out samples."""
    found = held_out_labels(subject.trained)
    if found is None:
        return None
    name, x, y = found
    bins = reliability(class_probabilities(subject.model, x).cpu(), y)
    caption = (
        f"Of {len(y):,} {name} samples, by how sure the model is: on the diagonal it is right as often as it says."
    )
    return Panel("Calibration", "Do its probabilities mean what they say?", [Calibration("reliability", caption, bins)])


def confusions(subject: Subject) -> Panel | None:
    """Return how often a class of the held-out samples is taken for another."""
    found = held_out_labels(subject.trained)
    if found is None:
        return None
    name, x, y = found
    shares = class_probabilities(subject.model, x).cpu()
    n = shares.shape[-1]
    counts = torch.zeros(n, n).index_put_((y.cpu(), shares.argmax(-1)), torch.ones(len(y)), accumulate=True)
    errors = counts - counts.diag().diag()
    caption = f"The {int(errors.sum()):,} errors among {len(y):,} {name} samples: what each class is taken for."
    picture = Heatmap("confusions", caption, errors, "", "taken for", "class")
    return Panel("Confusions", "Which classes are mixed up.", [picture])
