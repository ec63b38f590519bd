"""Gibbs sampling through `hm.sample`."""

from __future__ import annotations

import torch

import harmonium as hm
from benchmarks import peers, products, rows
from benchmarks.peers import rbms, scikit_learn
from benchmarks.runner import FLOOR, OURS, Bar, Case, Contender


def trained(n_visible: int, n_hidden: int) -> hm.RBM:
    """Return a binary RBM with weights and biases of the size that training gives."""
    source = rows.generator()
    model = hm.RBM(hm.Bernoulli(n_visible), hm.Bernoulli(n_hidden), generator=source)
    with torch.no_grad():
        model.weight.mul_(5)
        for bias in (model.visible_bias, model.hidden_bias):
            bias.copy_(torch.randn(bias.shape, generator=source))
    return model


def _build(quick: bool) -> list[Contender]:
    n_visible, n_hidden, n_chains, n_steps = (64, 32, 16, 10) if quick else (784, 500, 1024, 100)
    model = trained(n_visible, n_hidden)
    parts = [part.detach() for part in (model.weight, model.visible_bias, model.hidden_bias)]
    start = rows.binary_rows(n_chains, n_visible).float()

    def run() -> None:
        hm.sample(model, n_chains, n_steps=n_steps, generator=rows.generator(1))

    return [
        Contender(FLOOR, products.gibbs_sweeps(n_visible, n_hidden, n_chains, n_steps), "two products a sweep"),
        Contender(OURS, run, "`hm.sample(rbm, 1024, n_steps=100)`, the first states and the last check included"),
        *products.by_onednn(products.gibbs_sweeps_by_onednn(n_visible, n_hidden, n_chains, n_steps)),
        *peers.installed(
            lambda: scikit_learn.gibbs(*(part.numpy() for part in parts), start.numpy(), n_steps),
            lambda: rbms.gibbs(*parts, start, n_steps),
        ),
    ]


CASES = [
    Case(
        "gibbs",
        "Gibbs sampling, 784×500, 1,024 chains, 100 sweeps",
        _build,
        (Bar(1.12, FLOOR), Bar(1.0, "scikit-learn"), Bar(1.0, "rbms")),
    )
]
