"""What a model says of classes, whatever kind it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harmonium.models.class_rbm import ClassRBM
from harmonium.models.frozen import frozen
from harmonium.models.jem import JEM

_ROWS = 1000


@torch.no_grad()
def class_log_probabilities(model: nn.Module, x: Tensor) -> Tensor:
    """Return `log p(y|x)` of each sample, some rows at a time: of a joint model, of a ClassRBM, or of a network."""
    with frozen(model):
        return torch.cat([_of_rows(model, rows) for rows in x.split(_ROWS)])


def _of_rows(model: nn.Module, x: Tensor) -> Tensor:
    if isinstance(model, ClassRBM):
        return model.distribution("label", x).squeeze(-2).log()
    outputs: Tensor = model.class_logits(x) if isinstance(model, JEM) else model(x)
    return outputs.log_softmax(-1)
