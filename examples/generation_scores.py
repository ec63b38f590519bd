"""Scores of samples on gray images: what a Fréchet distance on a small classifier tells apart.

    python examples/generation_scores.py --data mnist --threads 1

A classifier is trained on the data set (MNIST: 99 % right after less than a minute) and kept in `--folder`. On its
features the first 10,000 training images are compared with test images, Gaussians on principal components, independent
Gaussian pixels, and an RBM of binary units before and after a short training. All but the RBM are scored twice: as they
are, and cut at 1/2 to black and white on both sides, as the RBM learns and draws them. The floor is the distance
between two halves of the real images. With `--inception FILE` the distance is FID, at 0.13 CPU seconds an image.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import Tensor

import harmonium as hm
from harmonium.data import load, scale
from harmonium.evaluation.images.choose_network import choose_network
from harmonium.evaluation.images.generation import generation_score
from harmonium.laws.principal import PCAGaussian, PixelGaussian

N_REAL, N_COMPONENTS = 10_000, 100


def drawn_images(x: Tensor, n: int, *, epochs: int, n_steps: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Return samples of the RBM (black and white) and of the baselines."""
    binary = (x > 0.5).float().flatten(1)
    rbm = hm.RBM(hm.Bernoulli(binary.shape[1]), hm.Bernoulli(500), generator=generator)
    hm.initialize(rbm, binary)
    before = hm.sample(rbm, n, n_steps=2, generator=generator)
    optimizer = torch.optim.SGD(rbm.parameters(), 0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / epochs)
    objective = hm.PCD(n_chains=100)
    hm.fit(rbm, binary, objective, optimizer=optimizer, schedule=schedule, epochs=epochs, generator=generator)
    after = hm.sample(rbm, n, n_steps=n_steps, start=before, generator=generator)
    pca = PCAGaussian.fit(x, min(N_COMPONENTS, binary.shape[1]))
    return {
        f"RBM, {epochs} epochs of PCD": after.view(n, *x.shape[1:]),
        f"Gaussian on {len(pca.components)} principal components": pca.sample(n, generator=generator),
        "RBM before training": before.view(n, *x.shape[1:]),
        "independent Gaussian pixels": PixelGaussian.fit(x).sample(n, generator=generator),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mnist", help="mnist, fashion-mnist or digits")
    parser.add_argument("--data-dir")
    parser.add_argument("--inception", help="weight file of Inception-v3")
    parser.add_argument("--folder", default="runs/feature-networks", help="where the classifier is kept")
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--epochs", type=int, default=10, help="of the RBM")
    parser.add_argument("--steps", type=int, default=300, help="Gibbs steps of its chains")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    generator, n = torch.Generator().manual_seed(arguments.seed), arguments.samples
    data = load(arguments.data, data_dir=arguments.data_dir)
    x, test = scale(data.train, data.levels), scale(data.test, data.levels)
    started = time.process_time()
    network = choose_network(data, inception=arguments.inception, folder=arguments.folder, seed=arguments.seed)
    print(f"{network.name} ready after {time.process_time() - started:.0f} CPU s", flush=True)
    started = time.process_time()
    chosen = torch.randperm(len(test), generator=generator)[:n]  # the first half of MNIST's is the easier one
    drawn = {"test images": test[chosen]} | drawn_images(
        x, n, epochs=arguments.epochs, n_steps=arguments.steps, generator=generator
    )
    print(f"samples drawn after {time.process_time() - started:.0f} CPU s", flush=True)
    for kind in ("gray", "black and white"):
        for name, images in drawn.items():
            real = x[:N_REAL]
            if kind == "black and white":
                real, images = (real > 0.5).float(), (images > 0.5).float()
            elif name.startswith("RBM"):
                continue
            print(f"{kind}, {name}: {generation_score(real, images, network, generator=generator)}", flush=True)


if __name__ == "__main__":
    main()
