"""Faces: train a deep belief network on color images, draw from it, and score what it draws beside two baselines."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from harmonium.data import Data, load
from harmonium.evaluation.feature_network import FeatureNetwork, efficientnet_lite0
from harmonium.evaluation.frechet import FrechetScore, frechet_floor, frechet_score, with_error
from harmonium.evaluation.gaussian_baselines import PCAGaussian, PixelGaussian
from harmonium.evaluation.neighbors import copy_check
from harmonium.evaluation.precision_recall import precision_recall
from harmonium.learning import PCD, Callback, ParameterAverage, Training, restore, snapshot
from harmonium.models import DBN
from harmonium.runs.atomic import write_atomic
from harmonium.runs.checkpoints import Checkpoints, detached
from harmonium.runs.face_network import FaceRecipe, build_face_network, empty_face_network, sample_faces

RECIPES: dict[int, FaceRecipe] = {32: FaceRecipe(), 64: FaceRecipe()}
"""The recipe for images of each size."""

SETTINGS, MODEL, SCORES, TABLE = "settings.json", "model.safetensors", "scores.json", "table.md"
BASELINES = ("noise", "pca", "pca_top")

Message = Callable[[str], None]


@dataclass(frozen=True)
class FaceRun:
    """The folder of one experiment on faces. Each stage leaves a file, and a stage whose file is there is not repeated.

    `settings` are those that decide the result: size, seed, recipe, numbers of samples and steps.
    """

    folder: Path
    size: int
    seed: int
    recipe: FaceRecipe
    n_samples: int = 2000
    n_steps: int = 300
    data: str = "celeba"

    def settings(self) -> dict[str, Any]:
        """Return what decides the result, as plain values."""
        values = {name: getattr(self, name) for name in ("size", "seed", "n_samples", "n_steps", "data")}
        return values | {"recipe": dataclasses.asdict(self.recipe)}

    def open(self) -> None:
        """Make the folder, or check that the one that is there was made with the same settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / SETTINGS
        if not path.is_file():
            write_atomic(path, json.dumps(self.settings(), indent=2).encode() + b"\n")
        elif json.loads(path.read_bytes()) != self.settings():
            raise ValueError(f"{self.folder} was made with other settings ({path}). Choose another folder with --out.")

    def images(self, data_dir: str | None = None) -> Data:
        """Return the data, pictures of the right size."""
        return load(self.data, data_dir=data_dir, size=self.size)

    def generator(self, stage: int) -> torch.Generator:
        """Return the generator of a stage: stages do not depend on which of them were done before."""
        return torch.Generator().manual_seed(1000 * self.seed + stage)


def as_floats(x: Tensor) -> Tensor:
    """Return bytes as values in [0, 1]."""
    return x.float() / 255


def mirrored(x: Tensor) -> Tensor:
    """Return images and their mirror images: a face is as good either way."""
    return torch.cat([x, x.flip(-1)])


class _Keeper(Callback):
    """Writes the training state now and then, and says how it goes."""

    def __init__(self, checkpoints: Checkpoints, say: Message, seconds: float = 60.0) -> None:
        self.checkpoints, self.say, self.seconds = checkpoints, say, seconds
        self.last = time.monotonic()

    def on_update(self, training: Training) -> None:
        """Write a checkpoint when it is time."""
        if time.monotonic() - self.last >= self.seconds:
            self.save(training)
            self.say(f"epoch {training.epoch}/{training.epochs}, update {training.update:,}")

    def save(self, training: Training) -> None:
        """Write the state."""
        self.checkpoints.save(*snapshot(training))
        self.last = time.monotonic()


def train_faces(run: FaceRun, data: Data, *, callbacks: tuple[Callback, ...] = (), say: Message) -> DBN | None:
    """Return the trained network: read if it is there, else trained from the last checkpoint on, and written.

    The lower machine is fitted in closed form, the top one learns by persistent contrastive divergence on its codes.
    Killed at any moment and called again, it ends with the same bits. None if a callback stopped it before the end.
    """
    path = run.folder / MODEL
    if path.is_file():
        dbn = empty_face_network(run.recipe, tuple(data.shape))
        dbn.load_state_dict(load_file(path))
        return dbn
    recipe, generator = run.recipe, run.generator(0)
    say("fitting the lower machine")
    x = as_floats(data.train)
    dbn = build_face_network(recipe, mirrored(x), generator=generator)
    codes = torch.cat([dbn.up(part, 1) for part in mirrored(x).split(500)])
    top = dbn[-1]
    optimizer = torch.optim.Adam(top.parameters(), recipe.learning_rate, fused=True)
    schedule = LambdaLR(optimizer, lambda epoch: max(0.02, 1 - epoch / recipe.epochs))
    average = ParameterAverage(recipe.average)
    checkpoints = Checkpoints(run.folder / "checkpoints")
    keeper = _Keeper(checkpoints, say)
    training = Training(
        top,
        codes,
        PCD(n_chains=recipe.n_chains, n_steps=recipe.n_steps),
        optimizer=optimizer,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        transforms=[average],
        schedule=schedule,
        callbacks=[keeper, *callbacks],
        generator=generator,
    )
    checkpoints.tidy()
    saved = checkpoints.load(on_damage=say)
    if saved is not None:
        restore(training, *saved)
    training.run()
    if training.epoch < training.epochs:
        keeper.save(training)
        return None
    average.swap(top)
    write_atomic(path, tensors_to_bytes(detached(dict(dbn.state_dict()))))
    say(f"trained {training.epoch} epochs, {training.update:,} updates in {training.seconds:.0f} s")
    return dbn


def draw_all(run: FaceRun, dbn: DBN, data: Data) -> dict[str, Tensor]:
    """Return images in [0, 1] of the network and of the baselines by their names, kept in the folder as bytes."""
    path = run.folder / "samples.safetensors"
    if not path.is_file():
        x, n = as_floats(data.train), run.n_samples
        top = min(run.recipe.n_hidden, x[0].numel(), len(x) - 1)
        drawn = {
            "dbn": sample_faces(dbn, n, n_steps=run.n_steps, generator=run.generator(1)),
            "noise": PixelGaussian.fit(x).sample(n, generator=run.generator(2)),
            "pca": PCAGaussian.fit(x, run.recipe.n_components).sample(n, generator=run.generator(3)),
            "pca_top": PCAGaussian.fit(x, top).sample(n, generator=run.generator(4)),
        }
        as_bytes = {name: (images.clamp(0, 1) * 255).round().to(torch.uint8) for name, images in drawn.items()}
        write_atomic(path, tensors_to_bytes(as_bytes))
    return {name: as_floats(images) for name, images in load_file(path).items()}


def features_of(
    run: FaceRun, name: str, images: Tensor, network: FeatureNetwork, say: Message, *, n_rows: int = 1000
) -> Tensor:
    """Return the features of images, kept in the folder part by part: a stopped run goes on with the next part."""
    parts = []
    for i, rows in enumerate(images.split(n_rows)):
        path = run.folder / "features" / f"{name}-{i:03d}.safetensors"
        if not path.is_file():
            path.parent.mkdir(exist_ok=True)
            write_atomic(path, tensors_to_bytes({"features": network.features(rows).contiguous()}))
            say(f"features of {name}: {min((i + 1) * n_rows, len(images)):,} of {len(images):,}")
        parts.append(load_file(path)["features"])
    return torch.cat(parts)


def score_faces(
    run: FaceRun, data: Data, drawn: dict[str, Tensor], *, network: FeatureNetwork | None = None, say: Message
) -> dict[str, Any]:
    """Return distance, precision, recall and copies of the network and the baselines, kept in `scores.json`."""
    path = run.folder / SCORES
    if path.is_file():
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found
    network = efficientnet_lite0() if network is None else network
    real = features_of(run, "real", data.train, network, say)
    floor = frechet_floor(real, generator=run.generator(5))
    records: dict[str, Any] = {}
    for name in ("dbn", *BASELINES):
        features = features_of(run, name, drawn[name], network, say)
        score = frechet_score(real, features, network, floor=floor)
        shares = precision_recall(real[: run.n_samples], features, network=network.name)
        records[name] = {
            "frechet": dataclasses.asdict(score) | {"text": str(score)},
            "shares": dataclasses.asdict(shares) | {"text": str(shares)},
        }
        say(f"{name}: {score}")
    held_out = torch.cat([part for part in (data.valid, data.test) if part is not None])
    few = drawn["dbn"][: len(held_out)]
    copies = copy_check(few, as_floats(data.train), as_floats(held_out), generator=run.generator(6))
    records["copies"] = dataclasses.asdict(copies) | {"text": str(copies)}
    write_atomic(path, json.dumps(records, indent=2).encode() + b"\n")
    return records


def table_of_faces(run: FaceRun, records: dict[str, Any]) -> str:
    """Return the scores as one Markdown table, with the network, the numbers of images and the seed below it."""
    recipe = run.recipe
    names = {
        "noise": "independent Gaussian pixels",
        "pca_top": f"Gaussian on {recipe.n_hidden} principal components (as many as the top layer)",
        "pca": f"Gaussian on {recipe.n_components} principal components (as many as the code)",
        "dbn": f"deep belief network, {recipe.n_components} code units, {recipe.n_hidden} at the top",
    }
    first, found = records["dbn"]["frechet"], records["dbn"]["shares"]
    score = FrechetScore(**{field.name: first[field.name] for field in dataclasses.fields(FrechetScore)})
    lines = [f"| faces {run.size} x {run.size} | {score.score} | precision | recall |", "|---|---|---|---|"]
    for name, title in names.items():
        distance, share = records[name]["frechet"], records[name]["shares"]
        cells = [with_error(distance["value"], distance["error"])]
        cells += [with_error(share[kind], share[f"{kind}_error"]) for kind in ("precision", "recall")]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines.append(f"| two halves of the real images | {with_error(score.floor, score.floor_error)} | | |")
    below = (
        f"{score.score} on {score.network} ({score.n_features} features): {score.n_samples:,} samples of each against "
        f"{score.n_real:,} real images; not comparable with other networks or other numbers of images. Precision and "
        f"recall: {found['n_neighbors']} neighbors, {found['n_samples']:,} samples, {found['n_real']:,} real images. "
        f"Pixels: {records['copies']['text']}. Seed {run.seed}, {recipe.epochs} epochs, {run.n_steps} Gibbs steps."
    )
    return "\n".join([*lines, "", below]) + "\n"
