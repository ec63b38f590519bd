"""The next frame of bouncing balls by temporal RBMs and by lines: `python -m benchmarks.bouncing_balls`.

The rate of each model is chosen by the squared prediction error of validation films with seed 0; other seeds use it.
Results are kept in a file and not computed again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor

import harmonium as hm
from benchmarks.results_file import ResultsFile
from harmonium.data import load
from harmonium.evaluation.autoregression import LinearAutoregression
from harmonium.samplers.in_time import predict

MODELS = {"conditional": (3, False), "recurrent": (0, True), "recurrent, order 3": (3, True)}
N_HIDDEN, EPOCHS, RATES, SEEDS = 300, 20, (3e-3, 6e-3), (0, 1, 2)
N_FILMS, N_STEPS, N_CHAIN = 3000, 5, 200


def error(found: Tensor, x: Tensor) -> float:
    """Return the squared error of a frame."""
    return (found - x).square().flatten(2).sum(2).mean().item()


def train(order: int, recurrent: bool, rate: float, seed: int, x: Tensor) -> hm.TemporalRBM:
    """Return a trained model."""
    generator = torch.Generator().manual_seed(seed)
    model = hm.TemporalRBM(hm.Bernoulli(225), hm.Bernoulli(N_HIDDEN), order, recurrent=recurrent, generator=generator)
    hm.initialize(model, {"frame": x})
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / EPOCHS)
    hm.fit(
        model,
        x,
        hm.CD(n_steps=N_STEPS),
        optimizer=optimizer,
        schedule=schedule,
        epochs=EPOCHS,
        batch_size=10,
        monitors=[],
        generator=generator,
    )
    return model


def score(order: int, recurrent: bool, rate: float, seed: int, films: dict[str, Tensor]) -> dict[str, float]:
    """Return the errors of a trained model on validation and test films, of all frames from the fourth on."""
    model = train(order, recurrent, rate, seed, films["train"])
    generator = torch.Generator().manual_seed(1000 + seed)
    found = {}
    for split in ("valid", "test"):
        x = films[split]
        found[split] = error(predict(model, x, n_steps=N_CHAIN, generator=generator)[:, 3 - order :], x[:, 3:])
    return found


def main() -> None:
    """Print a line for each prediction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("bouncing_balls.jsonl"))
    parser.add_argument("--only", choices=list(MODELS), help="one of the models")
    options = parser.parse_args()
    results, data = ResultsFile(options.output), load("bouncing-balls", n_samples=N_FILMS)
    splits = {"train": data.train, "valid": data.valid, "test": data.test}
    films = {split: x.flatten(2).float() for split, x in splits.items() if x is not None}
    valid, test = films["valid"], films["test"]
    print(
        f"the last frame: valid {error(valid[:, 2:-1], valid[:, 3:]):.3f}, test {error(test[:, 2:-1], test[:, 3:]):.3f}"
    )
    for order in (1, 2, 3):
        line = LinearAutoregression.fitted(films["train"], valid, order)
        found = {split: line.predict(films[split])[:, 3 - order :] for split in ("valid", "test")}
        told = f"valid {error(found['valid'], valid[:, 3:]):.3f}, test {error(found['test'], test[:, 3:]):.3f}"
        clipped = error(found["test"].clamp(0, 1), test[:, 3:])
        print(f"linear, order {order}, ridge {line.ridge:g}: {told}; clipped to [0, 1] {clipped:.3f}", flush=True)
    for name, (order, recurrent) in MODELS.items():
        if options.only not in (None, name):
            continue
        errors = {}
        for rate in RATES:
            asked = {"model": name, "rate": rate, "seed": SEEDS[0]}
            errors[rate] = results.find(asked, score, order, recurrent, rate, SEEDS[0], films)["valid"]
        chosen = min(errors, key=errors.__getitem__)
        for seed in SEEDS[1:]:
            asked = {"model": name, "rate": chosen, "seed": seed}
            results.find(asked, score, order, recurrent, chosen, seed, films)


if __name__ == "__main__":
    main()
