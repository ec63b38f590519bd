"""The next frame of bouncing balls by temporal RBMs and by lines: `python -m benchmarks.bouncing_balls`.

The rate of each model is chosen by the squared prediction error of validation films with seed 0; other seeds use it.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

import harmonium as hm
from harmonium.data import load
from harmonium.evaluation.autoregression import LinearAutoregression
from harmonium.samplers.in_time import predict

MODELS = {"conditional": (3, False), "recurrent": (0, True)}
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


def main() -> None:
    """Print a line for each prediction."""
    data = load("bouncing-balls", n_samples=N_FILMS)
    train_films, valid, test = (x.flatten(2).float() for x in (data.train, data.valid, data.test) if x is not None)
    print(
        f"the last frame: valid {error(valid[:, 2:-1], valid[:, 3:]):.3f}, test {error(test[:, 2:-1], test[:, 3:]):.3f}"
    )
    for order in (1, 2, 3):
        line = LinearAutoregression.fitted(train_films, valid, order)
        found = {split: line.predict(x)[:, 3 - order :] for split, x in (("valid", valid), ("test", test))}
        told = f"valid {error(found['valid'], valid[:, 3:]):.3f}, test {error(found['test'], test[:, 3:]):.3f}"
        clipped = error(found["test"].clamp(0, 1), test[:, 3:])
        print(f"linear, order {order}, ridge {line.ridge:g}: {told}; clipped to [0, 1] {clipped:.3f}", flush=True)
    for name, (order, recurrent) in MODELS.items():
        chosen, lowest = RATES[0], float("inf")
        for seed in SEEDS:
            for rate in RATES if seed == SEEDS[0] else (chosen,):
                started = time.process_time()
                model = train(order, recurrent, rate, seed, train_films)
                seconds = time.process_time() - started
                generator = torch.Generator().manual_seed(1000 + seed)
                found = {
                    split: predict(model, x, n_steps=N_CHAIN, generator=generator)[:, 3 - order :]
                    for split, x in (("v", valid), ("t", test))
                }
                valid_error, test_error = error(found["v"], valid[:, 3:]), error(found["t"], test[:, 3:])
                if seed == SEEDS[0] and valid_error < lowest:
                    chosen, lowest = rate, valid_error
                numbers = f"valid {valid_error:.3f}, test {test_error:.3f} ({seconds:.0f} s)"
                print(f"{name}, order {order}, rate {rate:g}, seed {seed}: {numbers}", flush=True)


if __name__ == "__main__":
    main()
