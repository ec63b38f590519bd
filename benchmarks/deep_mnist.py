"""A deep Boltzmann machine 784-500-1000 on static binarized MNIST, grown from a trained RBM, with its controls.

    harmonium train examples/binarized_mnist.toml --seed 0 --output runs/bottom-0
    python -m benchmarks.deep_mnist runs/bottom-0

The two lowest layers start as the RBM of the run, the third with small weights (`DBM.above`), and its chains at
images; all learn together by mean field and persistent chains. Bounds of the validation and test images, with log Z
from below and above, stand beside the RBM itself, and beside the deep machine with its third layer held at its means;
how far the bound is below the likelihood is annealed for some test images.
The machine and results are kept in the folder `--output` and not computed again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import harmonium as hm
from benchmarks.results_file import ResultsFile
from harmonium.data import load
from harmonium.draws import draw_bernoulli
from harmonium.inference import MeanField
from harmonium.models import Conditioned
from harmonium.runs import Run

N_TOP, N_CHAINS, BATCH, ROUNDS, N_CLAMPED = 1000, 100, 100, 3, 50


def deepened(rbm: hm.RBM, x: Tensor, options: argparse.Namespace) -> hm.DBM:
    """Return the deep machine with the average of its parameters, learned at a rate that falls to zero."""
    generator = torch.Generator().manual_seed(options.seed)
    dbm = hm.DBM.above(rbm, hm.Bernoulli(N_TOP), generator=generator)
    top = {dbm.weights[1], dbm.biases[2]}
    rates = [(options.rate, [p for p in dbm.parameters() if p not in top]), (options.top_rate, list(top))]
    optimizer = torch.optim.SGD([{"params": group, "lr": rate} for rate, group in rates], fused=True)
    average = hm.ParameterAverage(0.9998 if options.epochs > 20 else 0.999)
    some = x[torch.randperm(len(x), generator=generator)[:N_CHAINS]].float()
    means = MeanField().fixed_point(dbm, {"visible": some}).state
    chains = {name: draw_bernoulli(mean, generator=generator) for name, mean in means.items()}
    hm.fit(
        dbm,
        x,
        hm.PCD(N_CHAINS, chains=chains, inference=MeanField(ROUNDS, tolerance=0.01)),
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / options.epochs),
        epochs=options.epochs,
        batch_size=BATCH,
        transforms=[hm.Centering(), hm.WeightDecay(options.decay), average],
        monitors=[],
        generator=generator,
    )
    average.swap(dbm)
    return dbm


@torch.no_grad()
def without_top(dbm: hm.DBM, x: Tensor) -> hm.RBM:
    """Return the two lowest layers alone, with what the third tells the second on average as a bias."""
    means = MeanField().fixed_point(dbm, {"visible": x.float()}).state
    rbm = hm.RBM(dbm.layer("visible"), dbm.layer("hidden_1"))
    rbm.weight.copy_(dbm.weights[0])
    rbm.visible_bias.copy_(dbm.biases[0])
    rbm.hidden_bias.copy_(dbm.biases[1] + dbm.weights[1] @ means["hidden_2"].mean(0))
    return rbm


@torch.no_grad()
def activity(dbm: hm.DBM, x: Tensor) -> dict[str, float]:
    """Return norms of the weights, and how far the means of the units vary from image to image."""
    means = MeanField().fixed_point(dbm, {"visible": x.float()}).state
    norms = {f"|W{i}|": weight.norm(dim=0).mean().item() for i, weight in enumerate(dbm.weights, 1)}
    spread = means["hidden_2"].std(0)
    alive = {"second varies by": means["hidden_1"].std(0).mean().item(), "third varies by": spread.mean().item()}
    pushes = (means["hidden_2"] @ dbm.weights[1].T).std(0).mean().item()
    return norms | alive | {"third above 0.05": (spread > 0.05).double().mean().item(), "third to second": pushes}


def bound(model: hm.BoltzmannMachine, rows: dict[str, Tensor], options: argparse.Namespace) -> dict[str, Any]:
    """Return log Z and the mean log-likelihood, or its bound, of each split."""
    z = hm.log_z(
        model,
        method=options.log_z,
        n_chains=options.chains,
        n_betas=options.betas,
        reference=model.layer("visible").fitted_field(rows["train"][:10_000].float()),
        samples=rows["train"][:64].float(),
        generator=torch.Generator().manual_seed(options.seed + 1),
    )
    found: dict[str, Any] = {"log_z": [float(z.value), float(z.error), float(z.lower), float(z.upper)], "note": z.note}
    for split in ("valid", "test"):
        mean = hm.log_likelihood(model, rows[split].float(), log_z=z).mean()
        found[split] = [float(mean.value), float(mean.spread or 0), float(mean.lower), float(mean.upper)]
    return found


def slack(dbm: hm.DBM, x: Tensor, seed: int) -> dict[str, float]:
    """Return by how many nats the bound lies below `log p(x)`: its hidden layers annealed, x held (Neal 2001)."""
    generator = torch.Generator().manual_seed(seed + 2)
    effort: dict[str, Any] = {"method": "sandwich", "n_chains": 32, "n_betas": 100, "n_steps": 20}
    parts = [hm.log_z(Conditioned(dbm, {"visible": row}), generator=generator, **effort) for row in x]
    found = torch.tensor([float(z.value) for z in parts]).double() + MeanField().free_energy(dbm, {"visible": x})
    width = torch.tensor([float(z.upper) - float(z.lower) for z in parts])
    error = found.std().item() / len(x) ** 0.5
    return {"nats": found.mean().item(), "error": error, "width of an image": width.mean().item()}


def main() -> None:
    """Grow a deep machine from a run and print its bounds and those of its controls."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bottom", type=Path, help="a run of a 784-500 RBM on binarized MNIST")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--top-rate", type=float, help="of the third layer, if not that of the others")
    parser.add_argument("--decay", type=float, default=1e-4)
    parser.add_argument("--log-z", default="sandwich", choices=["sandwich", "tempering"])
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--betas", type=int, default=10_000)
    parser.add_argument("--output", type=Path, default=Path("deep_mnist"))
    options = parser.parse_args()
    options.top_rate = options.rate if options.top_rate is None else options.top_rate
    torch.set_num_threads(1)
    options.output.mkdir(parents=True, exist_ok=True)
    results, data = ResultsFile(options.output / "results.jsonl"), load("binarized-mnist")
    rbm: hm.RBM = Run.open(options.bottom).model()  # type: ignore[assignment]
    rows = {name: x.flatten(1) for name, x in data.splits.items()}
    learned = {"seed": options.seed, "epochs": options.epochs, "rate": options.rate, "decay": options.decay}
    learned |= {"top_rate": options.top_rate}
    path = options.output / ("-".join(map(str, learned.values())) + ".safetensors")
    results.find({"what": "learning"} | learned, lambda: deepened(rbm, rows["train"], options).save(path))
    dbm: hm.DBM = hm.load(path)
    results.find({"what": "activity"} | learned, activity, dbm, rows["valid"])
    results.find({"what": "slack"} | learned, slack, dbm, rows["test"][:N_CLAMPED].float(), options.seed)
    effort = {"log_z": options.log_z, "chains": options.chains, "betas": options.betas}
    models = {"deep": dbm, "rbm": rbm, "without the third layer": without_top(dbm, rows["train"][:10_000])}
    for name, model in models.items():
        results.find({"what": name} | learned | effort, bound, model, rows, options)


if __name__ == "__main__":
    main()
