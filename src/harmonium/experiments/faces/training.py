"""How a network of faces learns: the lower machines first, then the top one on their codes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from harmonium.data import Data
from harmonium.experiments.faces.folder import CURVE, LOWER, MODEL, FaceRun, Message, as_floats, mirrored
from harmonium.experiments.faces.network import (
    codes_of,
    convolutional_machines,
    empty_lower_machines,
    principal_machine,
    top_machine,
)
from harmonium.learning import (
    PCD,
    Callback,
    JointCD,
    ParameterAverage,
    Training,
    initialize_layers,
    layer_rates,
)
from harmonium.learning.history import Record
from harmonium.models import DBN, RBM
from harmonium.runs.atomic import write_atomic
from harmonium.runs.checkpoints import Checkpoints, detached
from harmonium.runs.keeper import Keeper

SPREAD = 0.3
"""Of the fields at which the convolutional machines start."""

MARKS = (1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""The shares of the epochs after which the network is kept, to be scored later."""


class _Marks(Callback):
    """Keeps the averaged top machine at some epochs."""

    def __init__(self, folder: Path, keeper: Keeper, average: ParameterAverage) -> None:
        self.folder, self.keeper, self.average = folder, keeper, average

    def on_epoch(self, training: Training, record: Record) -> None:
        """Write the parameters at a mark."""
        if training.epoch in {math.ceil(share * training.epochs) for share in MARKS} - {training.epochs}:
            self.folder.mkdir(exist_ok=True)
            self.write(f"epoch-{training.epoch:06d}", training.epoch, self.average.average)

    def write(self, name: str, epoch: int, parameters: dict[str, Tensor]) -> None:
        """Write parameters with their epoch and the CPU time."""
        values = {"epoch": epoch, "cpu_seconds": self.keeper.cpu_seconds}
        write_atomic(self.folder / f"{name}.safetensors", tensors_to_bytes(detached(parameters)))
        write_atomic(self.folder / f"{name}.json", json.dumps(values).encode())


def train_faces(run: FaceRun, data: Data, *, callbacks: Sequence[Callback] = (), say: Message) -> DBN | None:
    """Return the trained network: read if it is there, else trained from the last checkpoint on, and written.

    The top machine learns on the codes by persistent contrastive divergence. Killed at any moment and called again, it
    ends with the same bits. None if a callback stopped it before the end.
    """
    path, recipe = run.folder / MODEL, run.recipe
    if path.is_file():
        dbn = DBN([*empty_lower_machines(recipe, tuple(data.shape)), top_machine(recipe)])
        dbn.load_state_dict(load_file(path))
        return dbn
    lower = fit_lower_machines(run, data, callbacks=callbacks, say=say)
    if lower is None:
        return None
    generator = run.generator(7)
    top = top_machine(recipe, generator=generator)
    dbn = DBN([*lower, top])
    optimizer = torch.optim.Adam(top.parameters(), recipe.learning_rate, fused=True)
    average, keeper = ParameterAverage(recipe.average), Keeper(Checkpoints(run.folder / "checkpoints"), say=say)
    marks = _Marks(run.folder / CURVE, keeper, average)
    training = Training(
        top,
        codes_of(dbn, mirrored(as_floats(data.train))),
        PCD(n_chains=recipe.n_chains, n_steps=recipe.n_steps),
        optimizer=optimizer,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        transforms=[average],
        schedule=LambdaLR(optimizer, lambda epoch: 0.02 ** (epoch / recipe.epochs)),
        callbacks=[keeper, marks, *callbacks],
        generator=generator,
    )
    if not keeper.run(training):
        return None
    average.swap(top)
    marks.folder.mkdir(exist_ok=True)
    marks.write("end", training.epoch, dict(top.state_dict()))
    write_atomic(path, tensors_to_bytes(detached(dict(dbn.state_dict()))))
    say(f"trained {training.epoch} epochs, {training.update:,} updates in {keeper.cpu_seconds:.0f} s of CPU")
    return dbn


def fit_lower_machines(
    run: FaceRun, data: Data, *, callbacks: Sequence[Callback] = (), say: Message
) -> list[RBM] | None:
    """Return what lies below the top machine: read if it is there, else fitted and written; None if stopped.

    The convolutional machines learn all at once by the summed contrastive free energy (`JointCD`); the machine of the
    codes above them is probabilistic PCA of their means, or of the pixels, in closed form.
    """
    path, recipe, shape = run.folder / LOWER, run.recipe, tuple(data.shape)
    if path.is_file():
        machines = empty_lower_machines(recipe, shape)
        DBN(machines).load_state_dict(load_file(path))
        return machines
    stack = convolutional_machines(recipe, shape, generator=(generator := run.generator(0)))
    x = mirrored(data.train)
    if stack and not _train_jointly(run, DBN(stack), x, callbacks=callbacks, say=say, generator=generator):
        return None
    say("fitting the machine of the codes")
    features = as_floats(x) if not stack else torch.cat([DBN(stack).up(part.float()) for part in x.split(500)])
    machines = [*stack, principal_machine(features, recipe.n_components)]
    write_atomic(path, tensors_to_bytes(detached(dict(DBN(machines).state_dict()))))
    return machines


def _train_jointly(
    run: FaceRun,
    dbn: DBN,
    x: Tensor,
    *,
    callbacks: Sequence[Callback],
    say: Message,
    generator: torch.Generator,
) -> bool:
    """Train the convolutional machines on images of 0..255 all at once; False if a callback stopped it before."""
    recipe = run.recipe
    say(f"training the convolutional machines: {recipe.layers}")
    initialize_layers(dbn, x[:512].float(), spread=SPREAD)
    optimizer = torch.optim.Adam(layer_rates(dbn, recipe.layer_rate))
    keeper = Keeper(Checkpoints(run.folder / "checkpoints-lower"), say=say)
    training = Training(
        dbn,
        x,
        JointCD(),
        optimizer=optimizer,
        epochs=recipe.layer_epochs,
        batch_size=recipe.batch_size,
        schedule=LambdaLR(optimizer, lambda epoch: max(0.02, 1 - epoch / recipe.layer_epochs)),
        callbacks=[keeper, *callbacks],
        generator=generator,
    )
    finished = keeper.run(training)
    dbn.requires_grad_(False)
    return finished
