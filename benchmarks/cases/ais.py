"""Annealed importance sampling through `hm.ais`."""

from __future__ import annotations

import functools

import torch

import harmonium as hm
from benchmarks import peers, products, rows
from benchmarks.cases.gibbs import trained
from benchmarks.peers import rbms
from benchmarks.runner import FLOOR, OURS, Bar, Case, Contender

OURS_NOTE = (
    "`hm.ais(rbm, n_chains=512, betas=torch.linspace(0, 1, n))`: equally spaced temperatures are given, so that the "
    "pilot run that places them by default is not part of the work; returns an error bar and the effective sample size"
)


def _build(n_betas: int, quick: bool, *, peer: bool) -> list[Contender]:
    n_visible, n_hidden, n_chains = (64, 32, 16) if quick else (784, 500, 512)
    n_betas = 10 if quick else n_betas
    model = trained(n_visible, n_hidden)
    parts = [part.detach() for part in (model.weight, model.visible_bias, model.hidden_bias)]
    betas = torch.linspace(0, 1, n_betas, dtype=torch.float64).tolist()

    def run() -> None:
        hm.ais(model, n_chains=n_chains, betas=betas, generator=rows.generator(1))

    floor = products.gibbs_sweeps(n_visible, n_hidden, n_chains, n_betas - 1)
    others = peers.installed(lambda: rbms.ais(*parts, n_chains, n_betas)) if peer else []
    return [
        Contender(FLOOR, floor, "two products a temperature: v @ W serves the weight and the next draw"),
        Contender(OURS, run, OURS_NOTE),
        *products.by_onednn(products.gibbs_sweeps_by_onednn(n_visible, n_hidden, n_chains, n_betas - 1)),
        *others,
    ]


CASES = [
    Case(
        "ais",
        "AIS, 784×500, 512 chains × 1,000 betas",
        functools.partial(_build, 1000, peer=False),
        (Bar(1.35, FLOOR),),
    ),
    Case(
        "ais-peers",
        "AIS, 784×500, 512 chains × 100 betas",
        functools.partial(_build, 100, peer=True),
        note="fewer temperatures, the same for all, so that the run stays short: the cost is linear in them",
    ),
]
