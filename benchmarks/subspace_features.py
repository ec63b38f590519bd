"""Features of a subspace RBM into a linear classifier of MNIST: `python -m benchmarks.subspace_features`.

Beside plain RBMs with as many hidden units as gates, and with as many weights. The rate of each model is chosen by
validation error with seed 0; the other seeds use it. Prints a line for each training.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import harmonium as hm
from harmonium.data import load

Split = tuple[Tensor, Tensor]

N_GATES, WIDTH, EPOCHS, BATCH = 100, 4, 8, 100
RATES, DECAYS, SEEDS = (1e-3, 3e-3), (1e-5, 1e-4, 1e-3), (0, 1, 2)


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
def features(model: hm.BoltzmannMachine, x: Tensor) -> Tensor:
    """Return the means of the gates, or of the hidden units, row by row."""
    up = model.gate_mean if isinstance(model, hm.SubspaceRBM) else model.hidden_mean  # type: ignore[attr-defined]
    return torch.cat([up(rows.float()) for rows in x.split(2000)])


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


def score(make: Callable[..., hm.BoltzmannMachine], rate: float, seed: int) -> tuple[float, float]:
    """Train one model by CD-1; return the validation and test errors of a linear classifier of its features."""
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
    train, valid, test = ((features(model, x), y) for x, y in zip(splits, labels, strict=True) if y is not None)
    return classify(train, valid, test)


def main() -> None:
    """Print the errors of all models, rates and seeds."""
    for name, make in MODELS.items():
        chosen, lowest = RATES[0], 1.0
        for seed in SEEDS:
            for rate in RATES if seed == SEEDS[0] else (chosen,):
                started = time.process_time()
                valid, test = score(make, rate, seed)
                if seed == SEEDS[0] and valid < lowest:
                    chosen, lowest = rate, valid
                told = f"valid {valid:.2%}, test {test:.2%} ({time.process_time() - started:.0f} s)"
                print(f"{name}, rate {rate:g}, seed {seed}: {told}", flush=True)


if __name__ == "__main__":
    main()
