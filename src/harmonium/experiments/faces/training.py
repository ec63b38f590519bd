"""How a network of faces learns: the lower machines first, then the top one on their codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from harmonium.draws import draw_normal
from harmonium.experiments.base import Message, quiet
from harmonium.experiments.faces.folder import CURVE, FaceFolder, as_floats, mirrored
from harmonium.experiments.faces.network import (
    codes_of,
    empty_lower_network,
    empty_stack,
    top_machine,
    with_machine,
)
from harmonium.experiments.faces.recipe import FaceRecipe
from harmonium.learning import Callback, Training
from harmonium.learning.history import Record
from harmonium.learning.monitors import Depths
from harmonium.learning.objectives import PCD, Objective, Reconstruction, SummedLayers
from harmonium.learning.starts import initialize_layers, layer_rates, principal_layers, principal_machine
from harmonium.learning.transforms import ParameterAverage
from harmonium.models import DBN
from harmonium.runs.atomic import write_atomic
from harmonium.runs.folder import MODEL, RunFolder
from harmonium.runs.recorder import Recorder
from harmonium.runs.tensor_file import detached

LEVELS = 255
"""Of the images as they are stored."""

SPREAD, PRINCIPAL_SPREAD = 0.3, 0.1
"""Of the fields at which the layers start: at random weights, and at principal components."""

N_PRINCIPAL = 9000
"""Images from which principal components are taken to start at."""

MARKS = (1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""The shares of the epochs after which the network is kept, to be scored later."""

SECONDS = 60.0
"""Between two checkpoints."""


class _Marks(Callback):
    """Keeps the averaged top machine at some epochs."""

    def __init__(self, folder: Path, average: ParameterAverage, shares: Sequence[float]) -> None:
        self.folder, self.average, self.shares = folder, average, shares

    def on_epoch(self, training: Training, record: Record) -> None:
        """Write the parameters at a mark."""
        if training.epoch in {math.ceil(share * training.epochs) for share in self.shares} - {training.epochs}:
            self.folder.mkdir(exist_ok=True)
            path = self.folder / f"epoch-{training.epoch:06d}.safetensors"
            write_atomic(path, tensors_to_bytes(detached(self.average.average)))


def train_faces(run: FaceFolder, *, callbacks: Sequence[Callback] = (), say: Message = quiet) -> bool:
    """Train a network from its last checkpoint on, and write it. False if a callback stopped it before the end.

    The top machine learns on the codes by persistent contrastive divergence. Killed at any moment and called again, it
    ends with the same bits.
    """
    recipe = run.recipe
    lower = fit_lower_network(run, callbacks=callbacks, say=say)
    if lower is None:
        return False
    generator = run.generator(7)
    top = top_machine(recipe, generator=generator)
    dbn = with_machine(lower, top)
    optimizer = torch.optim.Adam(top.parameters(), recipe.learning_rate, fused=True)
    marks = () if recipe.deep else MARKS  # most of the time of a deep one goes into the layers below
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
        callbacks=[recorder, _Marks(run.folder / CURVE, average, marks), *callbacks],
        generator=generator,
    )
    if not recorder.run(training, on_message=say):
        return False
    average.swap(top)
    run.write_model(dict(dbn.state_dict()))
    say(f"trained {training.epoch} epochs, {training.update:,} updates in {recorder.cpu_seconds:.0f} s of CPU")
    return True


def fit_lower_network(run: FaceFolder, *, callbacks: Sequence[Callback] = (), say: Message = quiet) -> DBN | None:
    """Return what lies below the top machine: read if it is there, else fitted and written; None if stopped.

    The layers with levels learn all at once by the summed contrastive free energy (`SummedLayers`), then as a whole
    (`Reconstruction`), each as long as the recipe says; the machine of the codes above them is probabilistic PCA of
    their means, or of the pixels, in closed form.
    """
    recipe, shape = run.recipe, tuple(run.data.shape)
    if (run.lower.folder / MODEL).is_file():
        lower = empty_lower_network(recipe, shape)
        lower.load_state_dict(run.lower.parameters())
        return lower
    x, generator = training_images(run), run.generator(0)
    stack = empty_stack(recipe, shape, generator=generator)
    if stack is not None:
        stack = _trained_stack(run, stack, x, callbacks=callbacks, say=say, generator=generator)
        if stack is None:
            return None
    say("fitting the machine of the codes")
    lower = with_codes(recipe, stack, x)
    run.lower.write_model(dict(lower.state_dict()))
    return lower


def training_images(run: FaceFolder) -> Tensor:
    """Return the training images and their mirror images, as bytes or as numbers 0..N."""
    x, levels = mirrored(run.data.train), run.recipe.levels
    return x if levels == LEVELS else x.float() * (levels / LEVELS)


def with_codes(recipe: FaceRecipe, stack: DBN | None, x: Tensor) -> DBN:
    """Return layers, if there are any, below the machine of their codes over the images x."""
    features = as_floats(x) if stack is None else torch.cat([stack.up(part.float()) for part in x.split(500)])
    return with_machine(stack, principal_machine(features, recipe.n_components))


def untrained_network(run: FaceFolder) -> DBN:
    """Return the network whose layers have not learned: the machine of the codes is fitted to what they give."""
    x, generator = training_images(run), run.generator(0)
    stack = empty_stack(run.recipe, tuple(run.data.shape), generator=generator)
    if stack is not None:
        _start(run.recipe, stack, x, generator)
    return with_machine(with_codes(run.recipe, stack, x), top_machine(run.recipe))


def _start(recipe: FaceRecipe, stack: DBN, x: Tensor, generator: torch.Generator) -> None:
    """Start the layers: at principal components if they will only be tuned, else at random weights."""
    if recipe.layer_epochs or not recipe.tune_epochs:
        initialize_layers(DBN([*stack]), x[:512].float(), spread=SPREAD)
    else:
        rows = draw_normal(torch.empty(len(x)), generator=generator).argsort()[:N_PRINCIPAL]
        principal_layers(stack, x[rows], spread=PRINCIPAL_SPREAD, generator=generator)


def _trained_stack(
    run: FaceFolder, stack: DBN, x: Tensor, *, callbacks: Sequence[Callback], say: Message, generator: torch.Generator
) -> DBN | None:
    """Return the layers with levels, trained on images of 0..N: all at once, then as a whole; None if stopped."""
    recipe = run.recipe
    _start(recipe, stack, x, generator)
    if recipe.layer_epochs:
        say(f"training {recipe.layers}, each machine from its own loss")
        machines, objective, epochs = DBN([*stack]), SummedLayers(), recipe.layer_epochs
        if not _learn(run, run.lower, machines, x, objective, epochs, recipe.layer_rate, callbacks, say, generator):
            return None
        stack = machines.untied() if recipe.tune_epochs else machines
    if recipe.tune_epochs:
        say(f"training {recipe.layers} as a whole")
        tune, epochs = Reconstruction(recipe.noise), recipe.tune_epochs
        if not _learn(run, run.tuned, stack, x, tune, epochs, recipe.tune_rate, callbacks, say, generator):
            return None
    return stack.requires_grad_(False)


def _learn(
    run: FaceFolder,
    folder: RunFolder,
    dbn: DBN,
    x: Tensor,
    objective: Objective,
    epochs: int,
    rate: float,
    callbacks: Sequence[Callback],
    say: Message,
    generator: torch.Generator,
) -> bool:
    """Train a network with checkpoints in a folder; False if a callback stopped it before the last epoch."""
    optimizer = torch.optim.Adam(layer_rates(dbn, rate))
    recorder = Recorder(folder, least=SECONDS, keeps_model=False)
    training = Training(
        dbn,
        x,
        objective,
        optimizer=optimizer,
        epochs=epochs,
        batch_size=run.recipe.batch_size,
        schedule=LambdaLR(optimizer, lambda epoch: max(0.02, 1 - epoch / epochs)),
        monitors=[Depths()],
        callbacks=[recorder, *callbacks],
        generator=generator,
    )
    finished = recorder.run(training, on_message=say)
    say(f"trained {training.epoch} epochs, {training.update:,} updates in {recorder.cpu_seconds:.0f} s of CPU")
    return finished
