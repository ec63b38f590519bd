"""CD-1 of three convolutional layers through `hm.fit`, summed."""

from __future__ import annotations

import functools

import harmonium as hm
from benchmarks import products, rows
from benchmarks.cases.contrastive import FIT_NOTE, fit_epoch
from benchmarks.runner import FLOOR, OURS, Bar, Case, Contender

FILTERS = {"kernel": 4, "stride": 2, "padding": 1}


def _model(lower: tuple[int, int, int], upper: tuple[int, int, int]) -> hm.RBM:
    source = rows.generator()
    coupling = hm.Conv2d(lower[0], upper[0], **FILTERS, generator=source)
    return hm.RBM(hm.Bernoulli(*lower), hm.Bernoulli(*upper), coupling)


def _build(quick: bool) -> list[Contender]:
    channels, side, batch_size, n_updates = ([3, 4, 8, 16], 8, 8, 2) if quick else ([3, 64, 128, 256], 32, 128, 30)
    floors, ours = [], []
    for i, (below, above) in enumerate(zip(channels, channels[1:], strict=False)):
        lower, upper = (below, side >> i, side >> i), (above, side >> i + 1, side >> i + 1)
        floors.append(products.convolution_updates(lower, upper, **FILTERS, batch_size=batch_size, n_updates=n_updates))
        x = rows.binary_rows(batch_size * n_updates, *lower)
        ours.append(fit_epoch(functools.partial(_model, lower, upper), x, batch_size=batch_size, learning_rate=1e-4))

    def prepare() -> None:
        for one in ours:
            if one.prepare is not None:
                one.prepare()

    def run_floor() -> None:
        for one in floors:
            one()

    def run() -> None:
        for one in ours:
            one.run()

    return [
        Contender(
            FLOOR, run_floor, "bare convolutions, channels last: two forward, one transposed, two weight gradients"
        ),
        Contender(OURS, run, f"{FIT_NOTE}; one binary RBM with an hm.Conv2d a layer, 30 updates each", prepare),
    ]


CASES = [
    Case(
        "convolution",
        "convolutional CD-1, layers 3→64, 64→128, 128→256, 4×4, stride 2, from 32×32, batch 128, 30 updates, summed",
        _build,
        (Bar(1.15, FLOOR),),
    )
]
