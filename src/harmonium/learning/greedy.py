"""Deep belief networks layer by layer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from harmonium.draws import draw_permutation
from harmonium.learning.batches import Batches, Source
from harmonium.learning.fit import fit
from harmonium.learning.history import History
from harmonium.learning.objectives import Objective
from harmonium.learning.starts.initialize import initialize
from harmonium.learning.training import BatchTransform, Callback
from harmonium.learning.transforms import Transform
from harmonium.models import DBN

_N_ROWS = 512


def fit_greedy(
    dbn: DBN,
    data: Source,
    objective: Objective,
    *,
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer],
    epochs: int | Sequence[int],
    batch_size: int = 128,
    callbacks: Sequence[Callback] = (),
    generator: torch.Generator | None = None,
    validation: Tensor | None = None,
    transform: BatchTransform | None = None,
    transforms: Sequence[Transform] = (),
    sample_up: bool = False,
    start_biases: bool = True,
) -> list[History]:
    """Train each machine on what those below make of the data, the lowest first (Hinton et al. 2006).

    `objective` (CD, PCD, MeanFieldCD, …) and `transforms` are copied for each machine; `optimizer(parameters)` makes
    its optimizer, `epochs` is one number or one for each machine, 0 leaves a machine as it is. Batches go up as they
    are used, by means or by draws (`sample_up`): the features of the whole data are never held in memory. With
    `start_biases` the visible biases of each machine are first fitted to a sample of what it will see. Monitors look at
    the first 512 rows of `validation`. Returns a history for each machine.

    >>> dbn = DBN.from_spec("dense 4, dense 2", shape=(6,))
    >>> sgd = lambda parameters: torch.optim.SGD(parameters, 0.1)
    >>> [len(h) for h in fit_greedy(dbn, torch.eye(6).repeat(9, 1), CD(), optimizer=sgd, epochs=2)]
    [2, 2]
    """
    n_epochs = [epochs] * len(dbn) if isinstance(epochs, int) else list(epochs)
    if len(n_epochs) != len(dbn):
        raise ValueError(f"`epochs` must be one number, or one for each of {len(dbn)} machines. Got {n_epochs}.")
    histories = []
    for i, (rbm, n) in enumerate(zip(dbn, n_epochs, strict=True)):
        climb = _Climb(dbn, i, transform, sample_up)
        if start_biases and n:
            initialize(rbm, climb(_some_rows(dbn, data, generator), generator=generator))
        histories.append(
            fit(
                rbm,
                data,
                copy.deepcopy(objective),
                optimizer=optimizer(rbm.parameters()),
                epochs=n,
                batch_size=batch_size,
                callbacks=callbacks,
                generator=generator,
                validation=None if validation is None else climb(validation[:_N_ROWS], generator=generator),
                transform=climb if i else transform,
                transforms=copy.deepcopy(list(transforms)),
            )
        )
    return histories


class _Climb:
    """A batch transform: the user's own, then up to level i of the network, as machine i takes it."""

    def __init__(self, dbn: DBN, i: int, transform: BatchTransform | None, sample_up: bool) -> None:
        self.dbn, self.i, self.transform, self.sample_up = dbn, i, transform, sample_up

    @torch.no_grad()
    def __call__(self, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        if self.transform is not None:
            x = self.transform(x, generator=generator)
        weight = self.dbn[0].weight
        x = x.to(dtype=weight.dtype, device=weight.device)
        return self.dbn.enter(self.i, self.dbn.up(x, self.i, self.sample_up, generator=generator))


def _some_rows(dbn: DBN, data: Source, generator: torch.Generator | None) -> Tensor:
    batches = Batches(data, dbn)
    if batches.loader is not None:
        batch = next(iter(batches.loaded()))
    else:
        batch = batches.rows(draw_permutation(len(batches), generator=generator)[:_N_ROWS])
    return batch[dbn.data_layer]
