"""How a network of faces learns: the lower machines first, then the top one on their codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from harmonium.experiments.base import Message, quiet
from harmonium.experiments.faces.folder import CURVE, FaceFolder, as_floats, mirrored
from harmonium.experiments.faces.network import (
    codes_of,
    convolutional_machines,
    empty_lower_machines,
    principal_machine,
    top_machine,
)
from harmonium.learning import Callback, Training
from harmonium.learning.history import Record
from harmonium.learning.objectives import PCD, SummedLayers
from harmonium.learning.starts import initialize_layers, layer_rates
from harmonium.learning.transforms import ParameterAverage
from harmonium.models import DBN, RBM
from harmonium.runs.atomic import write_atomic
from harmonium.runs.folder import MODEL
from harmonium.runs.recorder import Recorder
from harmonium.runs.tensor_file import detached

SPREAD = 0.3
"""Of the fields at which the convolutional machines start."""

MARKS = (1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""The shares of the epochs after which the network is kept, to be scored later."""

SECONDS = 60.0
"""Between two checkpoints."""


class _Marks(Callback):
    """Keeps the averaged top machine at some epochs."""

    def __init__(self, folder: Path, average: ParameterAverage) -> None:
        self.folder, self.average = folder, average

    def on_epoch(self, training: Training, record: Record) -> None:
        """Write the parameters at a mark."""
        if training.epoch in {math.ceil(share * training.epochs) for share in MARKS} - {training.epochs}:
            self.folder.mkdir(exist_ok=True)
            path = self.folder / f"epoch-{training.epoch:06d}.safetensors"
            write_atomic(path, tensors_to_bytes(detached(self.average.average)))


def train_faces(run: FaceFolder, *, callbacks: Sequence[Callback] = (), say: Message = quiet) -> bool:
    """Train a network from its last checkpoint on, and write it. False if a callback stopped it before the end.

    The top machine learns on the codes by persistent contrastive divergence. Killed at any moment and called again, it
    ends with the same bits.
    """
    recipe = run.recipe
    lower = fit_lower_machines(run, callbacks=callbacks, say=say)
    if lower is None:
        return False
    generator = run.generator(7)
    top = top_machine(recipe, generator=generator)
    dbn = DBN([*lower, top])
    optimizer = torch.optim.Adam(top.parameters(), recipe.learning_rate, fused=True)
    average, recorder = ParameterAverage(recipe.average), Recorder(run, least=SECONDS, keeps_model=False)
    training = Training(
        top,
        codes_of(dbn, mirrored(as_floats(run.data.train))),
        PCD(n_chains=recipe.n_chains, n_steps=recipe.n_steps),
        optimizer=optimizer,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        transforms=[average],
        schedule=LambdaLR(optimizer, lambda epoch: 0.02 ** (epoch / recipe.epochs)),
        callbacks=[recorder, _Marks(run.folder / CURVE, average), *callbacks],
        generator=generator,
    )
    if not recorder.run(training, on_message=say):
        return False
    average.swap(top)
    run.write_model(dict(dbn.state_dict()))
    say(f"trained {training.epoch} epochs, {training.update:,} updates in {recorder.cpu_seconds:.0f} s of CPU")
    return True


def fit_lower_machines(
    run: FaceFolder, *, callbacks: Sequence[Callback] = (), say: Message = quiet
) -> list[RBM] | None:
    """Return what lies below the top machine: read if it is there, else fitted and written; None if stopped.

    The convolutional machines learn all at once by the summed contrastive free energy (`SummedLayers`); the machine
    of the codes above them is probabilistic PCA of their means, or of the pixels, in closed form.
    """
    recipe, shape, x = run.recipe, tuple(run.data.shape), mirrored(run.data.train)
    if (run.lower.folder / MODEL).is_file():
        machines = empty_lower_machines(recipe, shape)
        DBN(machines).load_state_dict(run.lower.parameters())
        return machines
    stack = convolutional_machines(recipe, shape, generator=(generator := run.generator(0)))
    if stack and not _train_together(run, DBN(stack), x, callbacks=callbacks, say=say, generator=generator):
        return None
    say("fitting the machine of the codes")
    features = as_floats(x) if not stack else torch.cat([DBN(stack).up(part.float()) for part in x.split(500)])
    machines = [*stack, principal_machine(features, recipe.n_components)]
    run.lower.write_model(dict(DBN(machines).state_dict()))
    return machines


def _train_together(
    run: FaceFolder, dbn: DBN, x: Tensor, *, callbacks: Sequence[Callback], say: Message, generator: torch.Generator
) -> bool:
    """Train the convolutional machines on images of 0..255 all at once; False if a callback stopped it before."""
    recipe = run.recipe
    say(f"training the convolutional machines: {recipe.layers}")
    initialize_layers(dbn, x[:512].float(), spread=SPREAD)
    optimizer = torch.optim.Adam(layer_rates(dbn, recipe.layer_rate))
    recorder = Recorder(run.lower, least=SECONDS, keeps_model=False)
    training = Training(
        dbn,
        x,
        SummedLayers(),
        optimizer=optimizer,
        epochs=recipe.layer_epochs,
        batch_size=recipe.batch_size,
        schedule=LambdaLR(optimizer, lambda epoch: max(0.02, 1 - epoch / recipe.layer_epochs)),
        callbacks=[recorder, *callbacks],
        generator=generator,
    )
    finished = recorder.run(training, on_message=say)
    dbn.requires_grad_(False)
    return finished
