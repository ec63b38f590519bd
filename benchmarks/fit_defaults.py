"""What the defaults of `fit` were chosen by, in validation nats: `python benchmarks/fit_defaults.py`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import torch

import harmonium as hm
from harmonium.data import Data, load
from harmonium.learning.starts import spread_components

SETS = ("digits", "bars-and-stripes", "ising", "moons", "mixture", "pinwheel")
RULES: dict[str, Callable[[], hm.CD | hm.PCD]] = {"CD-1": hm.CD, "PCD-5": lambda: hm.PCD(n_steps=5)}
RATES, SEEDS, N_HIDDEN, N_UPDATES = (0.003, 0.01, 0.03), (0, 1), 16, 2000


def simple(data: Data, x: torch.Tensor) -> float:
    """Return the nats of independent units, or of a single Gaussian."""
    train = data.train.double().flatten(1)
    if data.kind == "real":
        law = torch.distributions.MultivariateNormal(train.mean(0), torch.cov(train.T))
        return law.log_prob(x.double()).mean().item()
    p = (train.sum(0) + 0.5) / (len(train) + 1)
    return torch.where(x > 0.5, p, 1 - p).log().sum(1).mean().item()


def main() -> None:
    """Print a line for each set: the simple law, and each rule at each rate, two seeds."""
    warnings.simplefilter("ignore")
    for name in SETS:
        options = {"binarize": "threshold"} if name == "digits" else {}
        data = load(name, generator=torch.Generator().manual_seed(0), **options)
        x = data.train.float().flatten(1)
        valid = (data.train if data.valid is None else data.valid).float().flatten(1)  # bars and stripes: the whole law
        cells = []
        for rule, rate in ((rule, rate) for rule in RULES for rate in RATES):
            nats = []
            for seed in SEEDS:
                generator = torch.Generator().manual_seed(seed)
                is_real = data.kind == "real"
                visible = hm.Gaussian(x.shape[1]) if is_real else hm.Bernoulli(x.shape[1])
                rbm = hm.RBM(visible, hm.Bernoulli(N_HIDDEN), generator=generator)
                hm.initialize(rbm, x)
                if is_real:
                    spread_components(rbm, 0.5, generator=generator)
                optimizer = torch.optim.Adam(rbm.parameters(), rate)
                epochs = max(1, round(N_UPDATES / math.ceil(len(x) / 128)))
                hm.fit(rbm, x, RULES[rule](), optimizer=optimizer, epochs=epochs, monitors=[], generator=generator)
                nats.append(hm.log_likelihood(rbm, valid).mean().value)
            cells.append(f"{rule} at {rate}: " + " ".join(f"{value:.2f}" for value in nats))
        print(f"{name}, simple law {simple(data, valid):.2f} | " + " | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
