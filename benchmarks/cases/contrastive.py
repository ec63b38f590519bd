"""One epoch of CD-1 through `hm.fit`, with its default monitors, for every kind of unit."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

import harmonium as hm
from benchmarks import peers, products, rows
from benchmarks.peers import learnergy, rbms, scikit_learn
from benchmarks.runner import FLOOR, OURS, Bar, Case, Contender
from harmonium.learning.monitors import HealthWarning

BATCH = 128
FIT_NOTE = (
    "`hm.fit(rbm, rows, hm.CD(), optimizer=torch.optim.SGD(…, fused=True), epochs=1)`, monitors at their default; "
    "shuffles; the clock runs over the whole call"
)
AHEAD_OF_SCIKIT_LEARN = Bar(2.5 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 1.7, "scikit-learn")
"""Where it has 512-bit instructions, products take less of the time, and what we save beside them more."""
MakeModel = Callable[[], hm.RBM]


class AnyGraph(hm.CD):
    """CD by the path that serves any graph of layers; the straight line is for `CD` itself."""


def fit_epoch(
    make: MakeModel,
    x: Tensor,
    *,
    batch_size: int = BATCH,
    learning_rate: float = 0.01,
    rule: type[hm.CD] = hm.CD,
    name: str = OURS,
) -> Contender:
    """Return an epoch of `hm.fit` on a new model; making the model is not timed."""
    model: list[hm.RBM] = []

    def prepare() -> None:
        model[:] = [make()]

    def run() -> None:
        optimizer = torch.optim.SGD(model[0].parameters(), learning_rate, fused=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HealthWarning)  # made-up rows: nothing is to be learned
            hm.fit(
                model[0],
                x,
                rule(n_steps=1),
                optimizer=optimizer,
                epochs=1,
                batch_size=batch_size,
                generator=rows.generator(1),
            )

    return Contender(name, run, FIT_NOTE, prepare)


def bernoulli(n_visible: int, n_hidden: int) -> hm.RBM:
    """Return a new binary RBM."""
    return hm.RBM(hm.Bernoulli(n_visible), hm.Bernoulli(n_hidden), generator=rows.generator())


def multinary(n_visible: int, n_hidden: int) -> hm.RBM:
    """Return a new RBM of smooth multinary units, with weights so small that no unit is saturated."""
    model = hm.RBM(hm.Multinary(n_visible, levels=255), hm.Multinary(n_hidden, levels=255), generator=rows.generator())
    with torch.no_grad():
        model.weight.div_(1000)
    return model


def _floor(n_visible: int, n_hidden: int, n_rows: int) -> Contender:
    return Contender(
        FLOOR,
        products.contrastive_epoch(n_visible, n_hidden, n_rows, BATCH),
        "the five products of each update, as PyTorch makes them (`torch.mm`)",
    )


def _binary(n_hidden: int, quick: bool, *, everyone: bool) -> list[Contender]:
    n_rows, n_visible, n_hidden = (512, 64, n_hidden // 8) if quick else (60_000, 784, n_hidden)
    x = rows.binary_rows(n_rows, n_visible)
    floats = x.float()
    makers = [lambda: scikit_learn.epoch(floats.numpy(), n_hidden, BATCH)]
    if everyone:
        makers.append(lambda: learnergy.epoch(floats, n_hidden, BATCH))
        makers.append(lambda: rbms.epoch(floats.numpy(), n_hidden, BATCH))
    return [
        _floor(n_visible, n_hidden, n_rows),
        fit_epoch(functools.partial(bernoulli, n_visible, n_hidden), x),
        *products.by_onednn(products.contrastive_epoch_by_onednn(n_visible, n_hidden, n_rows, BATCH)),
        *peers.installed(*makers),
    ]


def _other(kind: str, quick: bool) -> list[Contender]:
    n_rows, n_visible, n_hidden = (512, 64, 32) if quick else (60_000, 784, 500)
    hidden = hm.Bernoulli(n_hidden)
    x, make, rate = {
        "gaussian": lambda: (
            rows.real_rows(n_rows, n_visible),
            lambda: hm.RBM(hm.Gaussian(n_visible), hidden, generator=rows.generator()),
            1e-4,
        ),
        "categorical": lambda: (
            rows.one_hot_rows(n_rows, n_visible // 8, 8),
            lambda: hm.RBM(hm.Categorical(n_visible // 8, 8), hidden, generator=rows.generator()),
            0.01,
        ),
        "multinary": lambda: (
            rows.level_rows(n_rows, n_visible),
            functools.partial(multinary, n_visible, n_hidden),
            1e-10,
        ),
    }[kind]()
    return [_floor(n_visible, n_hidden, n_rows), fit_epoch(make, x, learning_rate=rate)]


def _any_graph(n_hidden: int, quick: bool) -> list[Contender]:
    n_rows, n_visible, n_hidden = (512, 64, n_hidden // 8) if quick else (60_000, 784, n_hidden)
    x, make = rows.binary_rows(n_rows, n_visible), functools.partial(bernoulli, n_visible, n_hidden)
    straight, general = fit_epoch(make, x, name=FLOOR), fit_epoch(make, x, rule=AnyGraph)
    return [
        Contender(FLOOR, straight.run, "the same epoch by `hm.CD` itself, in a straight line", straight.prepare),
        Contender(OURS, general.run, "a subclass of `hm.CD`, which takes the path of any graph", general.prepare),
    ]


CASES = [
    Case(
        "cd1",
        "CD-1 epoch, 784×500, batch 128, 60,000 rows (uint8)",
        functools.partial(_binary, 500, everyone=True),
        (Bar(1.2, FLOOR), AHEAD_OF_SCIKIT_LEARN, Bar(1.0, "learnergy"), Bar(1.0, "rbms")),
    ),
    Case(
        "small",
        "CD-1 epoch, 784×64, batch 128, 60,000 rows (uint8)",
        functools.partial(_binary, 64, everyone=False),
        (Bar(1.7, FLOOR), Bar(1.0, "scikit-learn")),
    ),
    Case(
        "gaussian",
        "CD-1 epoch, Gaussian(784) – Bernoulli(500), batch 128, 60,000 rows (float32)",
        functools.partial(_other, "gaussian"),
        (Bar(1.4, FLOOR),),
        note="σ is learned",
    ),
    Case(
        "categorical",
        "CD-1 epoch, Categorical(98, 8) – Bernoulli(500), batch 128, 60,000 rows (uint8)",
        functools.partial(_other, "categorical"),
        (Bar(1.4, FLOOR),),
    ),
    Case(
        "multinary",
        "CD-1 epoch, smooth Multinary(784) – Multinary(500), 255 levels, batch 128, 60,000 rows (uint8)",
        functools.partial(_other, "multinary"),
        (Bar(1.4, FLOOR),),
    ),
    Case(
        "graph",
        "CD-1 epoch by the path of any graph, 784×500, batch 128, 60,000 rows (uint8)",
        functools.partial(_any_graph, 500),
        (Bar(1.15, FLOOR),),
        note="the floor is the straight line of a plain RBM",
    ),
]
