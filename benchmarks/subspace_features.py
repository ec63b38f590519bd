"""Features of a subspace RBM into a linear classifier of MNIST: `python -m benchmarks.subspace_features`.

Beside plain RBMs with as many hidden units as gates, and with as many weights. Features are the means of the gates (or
hidden units) or their log-odds. The rate of each model and which of the two is read are chosen by validation error with
seed 0; the other seeds use them. Prints a line for each training and keeps results in a file.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import harmonium as hm
from benchmarks.results_file import ResultsFile
from harmonium.data import load

Split = tuple[Tensor, Tensor]

N_GATES, WIDTH, EPOCHS, BATCH = 100, 4, 8, 100
RATES, DECAYS, SEEDS = (1e-3, 3e-3), (1e-5, 1e-4, 1e-3), (0, 1, 2)
READINGS = ("means", "log-odds")


def subspace(*, generator: torch.Generator) -> hm.SubspaceRBM:
    """Return a subspace RBM; its features are the means of the gates."""
    return hm.SubspaceRBM(hm.Bernoulli(784), N_GATES, WIDTH, generator=generator)


def plain(n: int) -> Callable[..., hm.RBM]:
    """Return a maker of RBMs with `n` hidden units."""
    return lambda *, generator: hm.RBM(hm.Bernoulli(784), hm.Bernoulli(n), generator=generator)


MODELS: dict[str, Callable[..., hm.BoltzmannMachine]] = {
    f"subspace RBM, {N_GATES} gates over {WIDTH}": subspace,
    f"RBM, {N_GATES} hidden units": plain(N_GATES),
    f"RBM, {N_GATES * WIDTH} hidden units": plain(N_GATES * WIDTH),
}


@torch.no_grad()
def features(model: hm.BoltzmannMachine, x: Tensor) -> dict[str, Tensor]:
    """Return the means of the gates, or of the hidden units, and their log-odds, row by row."""
    up = model.gate_field if isinstance(model, hm.SubspaceRBM) else hidden_field(model)
    fields = torch.cat([up(rows.float()) for rows in x.split(2000)])
    return {"means": fields.sigmoid(), "log-odds": fields}


def hidden_field(model: hm.BoltzmannMachine) -> Callable[[Tensor], Tensor]:
    """Return what gives the log-odds of the hidden units of an RBM, linear in the data."""
    return lambda v: model.field("hidden", {"visible": v})


def classify(train: Split, valid: Split, test: Split) -> tuple[float, float]:
    """Return the errors of softmax regression on standardized features, its decay chosen on validation data."""
    mean, std = train[0].mean(0), train[0].std(0).clamp_min(1e-3)
    (x, y), (v, v_labels), (t, t_labels) = (((f - mean) / std, labels) for f, labels in (train, valid, test))
    held_out, found = ((v, v_labels), (t, t_labels)), []
    for decay in DECAYS:
        weight, bias = torch.zeros(x.shape[1], 10, requires_grad=True), torch.zeros(10, requires_grad=True)
        optimizer = torch.optim.LBFGS([weight, bias], max_iter=150, line_search_fn="strong_wolfe")

        def closure(weight: Tensor = weight, bias: Tensor = bias, decay: float = decay) -> Tensor:
            weight.grad = bias.grad = None
            loss = cross_entropy(x @ weight + bias, y) + decay * weight.square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)  # type: ignore[arg-type]
        valid_error, test_error = (((f @ weight + bias).argmax(1) != z).double().mean().item() for f, z in held_out)
        found.append((valid_error, test_error))
    return min(found, key=lambda errors: errors[0])


def score(make: Callable[..., hm.BoltzmannMachine], rate: float, seed: int) -> dict[str, tuple[float, float]]:
    """Train one model by CD-1; return the validation and test errors of a linear classifier of each reading of it."""
    data = load("mnist", binarize="threshold")
    splits = [x.flatten(1) for x in (data.train, data.valid, data.test) if x is not None]
    generator = torch.Generator().manual_seed(seed)
    model = make(generator=generator)
    hm.initialize(model, splits[0].float())
    optimizer = torch.optim.Adam(model.parameters(), rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / EPOCHS)
    hm.fit(
        model,
        splits[0],
        hm.CD(),
        optimizer=optimizer,
        schedule=schedule,
        epochs=EPOCHS,
        batch_size=BATCH,
        monitors=[],
        generator=generator,
    )
    labels = (data.train_labels, data.valid_labels, data.test_labels)
    read = [(features(model, x), y) for x, y in zip(splits, labels, strict=True) if y is not None]
    return {how: classify(*((of[how], y) for of, y in read)) for how in READINGS}


def main() -> None:
    """Print the errors of all models, rates and seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("subspace_features.jsonl"))
    results = ResultsFile(parser.parse_args().output)
    for name, make in MODELS.items():
        found = {}
        for rate in RATES:
            found[rate] = results.find({"model": name, "rate": rate, "seed": 0}, score, make, rate, 0)
        rate, how = min(
            ((rate, how) for rate in RATES for how in READINGS), key=lambda chosen: found[chosen[0]][chosen[1]][0]
        )
        errors = [found[rate][how]]
        for seed in SEEDS[1:]:
            asked = {"model": name, "rate": rate, "seed": seed}
            errors.append(results.find(asked, score, make, rate, seed)[how])
        valid, test = (", ".join(f"{error:.2%}" for error in split) for split in zip(*errors, strict=True))
        print(f"{name}, {how}, rate {rate:g}: test {test}; validation {valid}", flush=True)


if __name__ == "__main__":
    main()
