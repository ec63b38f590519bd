"""How often a classifier is right."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from harmonium.models.class_log_probabilities import class_log_probabilities


@torch.no_grad()
def class_probabilities(model: nn.Module, x: Tensor) -> Tensor:
    """Return `p(y|x)` of each sample, some rows at a time."""
    return class_log_probabilities(model, x).exp()


def accuracy(probabilities: Tensor, labels: Tensor) -> dict[str, Any]:
    """Return the share p of samples whose most probable class is right, its standard error `√(p(1-p)/n)`, and n.

    >>> from harmonium.evaluation.classify.accuracy import accuracy
    >>> accuracy(torch.eye(4), torch.tensor([0, 1, 2, 0]))["value"]
    0.75
    """
    right = (probabilities.argmax(-1).cpu() == labels).double().mean().item()
    return {"value": right, "error": math.sqrt(right * (1 - right) / len(labels)), "n": len(labels)}
