"""What the samples of a network of faces are worth, beside Gaussian baselines and over the time of training."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

import torch
from safetensors.torch import load_file
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from harmonium.draws import draw_normal
from harmonium.evaluation.images.feature_network import EFFICIENTNET_LITE0, FeatureNetwork, efficientnet_lite0
from harmonium.evaluation.images.frechet import FrechetScore, frechet_distance, frechet_floor, frechet_score, with_error
from harmonium.evaluation.images.neighbors import copy_check
from harmonium.evaluation.images.precision_recall import precision_recall
from harmonium.experiments.base import Message, quiet
from harmonium.experiments.faces.folder import CURVE, FaceFolder, as_floats
from harmonium.experiments.faces.network import images_of, sample_faces
from harmonium.experiments.faces.recipe import FaceRecipe
from harmonium.experiments.faces.training import untrained_network
from harmonium.laws.principal import PCAGaussian, PixelGaussian
from harmonium.runs.atomic import write_atomic
from harmonium.runs.folder import TIMING, read_lines

N_CURVE = 500
"""Samples of each point of the curve over time."""


def baselines(recipe: FaceRecipe) -> dict[str, str]:
    """Return what the network is compared with, by name, in words; a deep one with the parts of itself as well."""
    found = {
        "noise": "independent Gaussian pixels",
        "pca_top": f"Gaussian on {recipe.n_hidden} principal components (as many as the top layer)",
        "pca": f"Gaussian on {recipe.n_components} principal components (as many as the code)",
    }
    if recipe.deep:
        del found["noise"], found["pca_top"]
        found["untrained"] = "the layers before they learn, below a Gaussian law of their codes"
        found["gaussian"] = "the layers after they have learned, below a Gaussian law of their codes"
    return found


def draw_all(run: FaceFolder) -> dict[str, Tensor]:
    """Return images in [0, 1] of the network and of the baselines by their names, kept in the folder as bytes."""
    path = run.folder / "samples.safetensors"
    if not path.is_file():
        names = ("dbn", *baselines(run.recipe))
        write_atomic(path, tensors_to_bytes({name: _as_bytes(_draw(run, name)) for name in names}))
    return {name: as_floats(images) for name, images in load_file(path).items()}


def _draw(run: FaceFolder, name: str) -> Tensor:
    """Return images of the network or of one baseline."""
    x, n, recipe = as_floats(run.data.train), run.n_samples, run.recipe
    stage = {"dbn": 1, "noise": 2, "pca": 3, "pca_top": 4, "untrained": 9, "gaussian": 10}[name]
    generator = run.generator(stage)
    if name == "dbn":
        return sample_faces(run.network(), n, n_steps=run.n_steps, generator=generator)
    if name == "noise":
        return PixelGaussian.fit(x).sample(n, generator=generator)
    if name in ("pca", "pca_top"):
        wanted = recipe.n_components if name == "pca" else min(recipe.n_hidden, x[0].numel(), len(x) - 1)
        return PCAGaussian.fit(x, wanted).sample(n, generator=generator)
    codes = draw_normal(x.new_empty(n, recipe.n_components), generator=generator)
    dbn = run.network() if name == "gaussian" else untrained_network(run)
    return images_of(dbn, codes)  # they have mean 0 and variance 1 over the data


def _as_bytes(images: Tensor) -> Tensor:
    return (images.clamp(0, 1) * 255).round().to(torch.uint8).contiguous()


def suffix(network: FeatureNetwork | None) -> str:
    """Return what files of a feature network other than the default have in their names, so that none are mixed up."""
    return "" if network is None or network.name == EFFICIENTNET_LITE0 else f"-{network.slug}"


def features_of(
    run: FaceFolder, name: str, images: Tensor, network: FeatureNetwork, say: Message, *, n_rows: int = 1000
) -> Tensor:
    """Return the features of images, kept in the folder part by part: a stopped run goes on with the next part."""
    parts = []
    for i, rows in enumerate(images.split(n_rows)):
        path = run.folder / f"features{suffix(network)}" / f"{name}-{i:03d}.safetensors"
        if not path.is_file():
            path.parent.mkdir(exist_ok=True)
            write_atomic(path, tensors_to_bytes({"features": network.features(rows).contiguous()}))
            say(f"features of {name}: {min((i + 1) * n_rows, len(images)):,} of {len(images):,}")
        parts.append(load_file(path)["features"])
    return torch.cat(parts)


def score_faces(run: FaceFolder, *, network: FeatureNetwork | None = None, say: Message = quiet) -> dict[str, Any]:
    """Return the scores of the network and the baselines and the curve over time, kept by the feature network.

    They are the Fréchet distance, precision, recall and whether samples are copies of the training images.
    """
    wanted, known = EFFICIENTNET_LITE0 if network is None else network.name, run.evaluation() or {}
    if wanted in known:
        return dict(known[wanted])
    network = efficientnet_lite0() if network is None else network
    data, drawn = run.data, draw_all(run)
    real = features_of(run, "real", data.train, network, say)
    floor = frechet_floor(real, generator=run.generator(5))
    records: dict[str, Any] = {}
    spread = as_floats(data.train).std(0).mean()
    for name in ("dbn", *baselines(run.recipe)):
        features = features_of(run, name, drawn[name], network, say)
        score = frechet_score(real, features, network, floor=floor)
        shares = precision_recall(real[: run.n_samples], features, network=network.name)
        records[name] = {
            "frechet": dataclasses.asdict(score) | {"text": str(score)},
            "shares": dataclasses.asdict(shares) | {"text": str(shares)},
            "spread": (drawn[name].std(0).mean() / spread).item(),
        }
        say(f"{name}: {score}")
    held_out = torch.cat([part for part in (data.valid, data.test) if part is not None])
    few = drawn["dbn"][: len(held_out)]
    copies = copy_check(few, as_floats(data.train), as_floats(held_out), generator=run.generator(6))
    records["copies"] = dataclasses.asdict(copies) | {"text": str(copies)}
    few_real = frechet_floor(real, n_first=min(run.n_samples, len(real) - 2), generator=run.generator(12))
    records["floor"] = {"value": statistics.mean(few_real), "error": statistics.stdev(few_real)}
    records["curve"] = _curve(run, real, network, say)
    run.write_evaluation(known | {wanted: records})
    return records


def _curve(run: FaceFolder, real: Tensor, network: FeatureNetwork, say: Message) -> list[dict[str, Any]]:
    """Return the distance of the first samples at each mark of training and at its end, with epoch and CPU time."""
    if not (run.folder / CURVE).is_dir():
        return []
    dbn, points, n = run.network(), [], min(N_CURVE, run.n_samples)
    seconds = {line["epoch"]: line["cpu_seconds"] for line in read_lines(run.folder / TIMING)}
    marks = {int(path.stem.removeprefix("epoch-")): path for path in (run.folder / CURVE).glob("epoch-*.safetensors")}
    for epoch in [*sorted(marks), run.epochs]:
        name = f"{CURVE}-{marks[epoch].stem}" if epoch in marks else f"{CURVE}-end"
        machine = load_file(marks[epoch]) if epoch in marks else run.network()[-1].state_dict()
        dbn[-1].load_state_dict(machine)
        images = sample_faces(dbn, n, n_steps=run.n_steps, generator=run.generator(8))
        distance = frechet_distance(real, features_of(run, name, images, network, say))
        points.append({"epoch": epoch, "cpu_seconds": seconds[epoch], "frechet": distance, "n_samples": n})
    return points


def table_of_faces(run: FaceFolder, records: dict[str, Any]) -> str:
    """Return the scores as one Markdown table, with the network, the numbers of images and the seed below it."""
    recipe = run.recipe
    below = f"{recipe.layers}, " if recipe.layers else ""
    names = baselines(recipe) | {
        "dbn": f"deep belief network, {below}{recipe.n_components} code units, {recipe.n_hidden} at the top"
    }
    first, found = records["dbn"]["frechet"], records["dbn"]["shares"]
    score = FrechetScore(**{field.name: first[field.name] for field in dataclasses.fields(FrechetScore)})
    head = f"| faces {run.size} x {run.size} | {score.score} | precision | recall | pixel spread / data |"
    lines = [head, "|---|---|---|---|---|"]
    for name, title in names.items():
        distance, share = records[name]["frechet"], records[name]["shares"]
        cells = [with_error(distance["value"], distance["error"])]
        cells += [with_error(share[kind], share[f"{kind}_error"]) for kind in ("precision", "recall")]
        lines.append(f"| {title} | {' | '.join(cells)} | {records[name]['spread']:.2f} |")
    lines.append(f"| two halves of the real images | {with_error(score.floor, score.floor_error)} | | | |")
    if "floor" in records:
        floor = with_error(records["floor"]["value"], records["floor"]["error"])
        lines.append(f"| as many real images as samples, against the others | {floor} | | | |")
    text = (
        f"{score.score} on {score.network} ({score.n_features} features): {score.n_samples:,} samples of each against "
        f"{score.n_real:,} real images; not comparable with other networks or other numbers of images. Precision and "
        f"recall: {found['n_neighbors']} neighbors, {found['n_samples']:,} samples, {found['n_real']:,} real images. "
        f"Pixels: {records['copies']['text']}. Seed {run.seed}, {recipe.epochs} epochs, {run.n_steps} Gibbs steps."
    )
    return "\n".join([*lines, "", text]) + "\n"
