"""MovieLens-100k, split u1: the RMSE of a `RatingRBM` beside that of a biased matrix factorization tuned as hard.

    python benchmarks/movielens.py

Both are tried in 8 settings on the same 72,000 ratings and scored on the same 8,000 held-out ones after every second
epoch; the best setting and number of epochs is then learned from all 80,000 ratings of u1.base, with three seeds, and
scored on the 20,000 of u1.test once. Beside them the means of users and items alone. Data are read from the folder that
HARMONIUM_DATA names.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

import harmonium as hm
from harmonium.data import load
from harmonium.models import RatingRBM

Pairs = tuple[Tensor, Tensor, Tensor]
"""Users, items and their ratings."""

EPOCHS, EVERY, SEEDS = 12, 2, 3


def pairs(table: Tensor) -> Pairs:
    users, items = (~table.isnan()).nonzero(as_tuple=True)
    return users, items, table[users, items]


def rmse(predicted: Tensor, wanted: Tensor) -> float:
    return (predicted.clamp(1, 5) - wanted).square().mean().sqrt().item()


def boltzmann(
    known: Tensor, asked: Pairs, seed: int, epochs: int, rows: str, n: int, rate: float, decay: float
) -> Iterator[float]:
    """Learn a machine, its rate falling to zero over `EPOCHS` epochs; yield its RMSE after every second epoch."""
    generator = torch.Generator().manual_seed(seed)
    model = RatingRBM(*known.shape, hidden=hm.Gaussian(n), rows=rows, generator=generator)
    model.start(known)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], rate)
    state, found = model.observed(known), list[float]()
    there = state["rated"].any(1)  # an item that nobody rated has nothing to teach

    class Score(hm.learning.Callback):  # type: ignore[name-defined]
        def on_epoch(self, training, record):  # type: ignore[no-untyped-def]
            if training.epoch % EVERY == 0:
                found.append(rmse(model.predict(known, *asked[:2]), asked[2]))

    hm.fit(
        model,
        {name: value[there] for name, value in state.items()},
        optimizer=optimizer,
        epochs=epochs,
        batch_size=64,
        monitors=[],
        callbacks=[Score()],
        transforms=[hm.WeightDecay(decay)],
        schedule=LambdaLR(optimizer, lambda epoch: 1 - epoch / EPOCHS),
        generator=generator,
    )
    yield from found


def factorization(
    known: Tensor, asked: Pairs, seed: int, epochs: int, rank: int, rate: float, decay: float
) -> Iterator[float]:
    """Learn `μ + b_u + b_i + p_u·q_i` by Adam on squares with decay (Koren, Bell and Volinsky 2009, eq. 5)."""
    generator = torch.Generator().manual_seed(seed)
    users, items, ratings = pairs(known)
    mean = ratings.mean()
    sizes = [(n, rank) for n in known.shape]
    factors = [(0.1 * torch.randn(*size, generator=generator)).requires_grad_() for size in sizes]
    biases = [torch.zeros(n, requires_grad=True) for n in known.shape]
    optimizer = torch.optim.Adam([*factors, *biases], rate)
    schedule = LambdaLR(optimizer, lambda epoch: 1 - epoch / EPOCHS)

    def parts(u: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
        p, q, b, c = factors[0][u], factors[1][i], biases[0][u], biases[1][i]
        return mean + b + c + (p * q).sum(1), p.square().sum(1) + q.square().sum(1) + b.square() + c.square()

    for epoch in range(epochs):
        for rows in torch.randperm(len(ratings), generator=generator).split(500):
            predicted, squares = parts(users[rows], items[rows])
            optimizer.zero_grad()
            ((predicted - ratings[rows]).square() + decay * squares).mean().backward()
            optimizer.step()
        schedule.step()
        if (epoch + 1) % EVERY == 0:
            with torch.no_grad():
                yield rmse(parts(asked[0], asked[1])[0], asked[2])


Method = Callable[..., Iterator[float]]

METHODS: dict[str, tuple[Method, list[tuple[object, ...]]]] = {
    "RatingRBM": (boltzmann, list(itertools.product(["items"], [50, 100], [0.006, 0.01], [3e-6, 1e-5]))),
    "matrix factorization": (factorization, list(itertools.product([20, 40], [0.005, 0.01], [0.07, 0.1]))),
}


def baseline(known: Tensor, asked: Pairs) -> float:
    """Return the RMSE of `μ + b_u + b_i` with damped means (25 ratings of prior for items, 10 for users)."""
    there, filled = (~known.isnan()).float(), known.nan_to_num(0)
    mean = filled.sum() / there.sum()
    item = ((filled - mean) * there).sum(0) / (there.sum(0) + 25)
    user = ((filled - mean - item) * there).sum(1) / (there.sum(1) + 10)
    return rmse(mean + user[asked[0]] + item[asked[1]], asked[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(METHODS), help="one of the two methods")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    data = load("movielens")
    train, valid, test = data.train, pairs(data.valid), pairs(data.test)  # type: ignore[arg-type]
    both = torch.where(train.isnan(), data.valid, train)  # type: ignore[arg-type]
    print(data)
    for name, (method, settings) in METHODS.items():
        if only not in (None, name):
            continue
        best, started = (9.0, 0, settings[0]), time.process_time()
        for setting in settings:
            curve = list(method(train, valid, 0, EPOCHS, *setting))
            lowest = min(curve)
            at = EVERY * (curve.index(lowest) + 1)
            print(f"{name} {setting}: validation RMSE {lowest:.4f} after {at} epochs", flush=True)
            best = min(best, (lowest, at, setting), key=lambda found: found[0])
        scores = torch.tensor([list(method(both, test, seed, best[1], *best[2]))[-1] for seed in range(SEEDS)])
        values = ", ".join(f"{score:.4f}" for score in scores.tolist())
        print(
            f"{name}, {len(settings)} settings tried, {best[2]}, {best[1]} epochs, validation {best[0]:.4f}: test RMSE "
            f"{scores.mean():.4f} ± {scores.std():.4f} ({values}); {time.process_time() - started:.0f} CPU s",
            flush=True,
        )
    print(f"means of users and items: validation {baseline(train, valid):.4f}, test RMSE {baseline(both, test):.4f}")


if __name__ == "__main__":
    main()
