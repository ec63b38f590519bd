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
    model = hm.SubspaceRBM(hm.Bernoulli(784), N_GATES, WIDTH, generator=generator)
    with torch.no_grad():
        model.weight.mul_(10)  # groups whose members start apart learn sooner
    return model


def plain(n: int) -> Callable[..., hm.RBM]:
    """Return a maker of RBMs with `n` hidden units."""
    return lambda *, generator: hm.RBM(hm.Bernoulli(784), hm.Bernoulli(n), generator=generator)


MODELS: dict[str, Callable[..., hm.BoltzmannMachine]] = {
    f"subspace RBM, {N_GATES} gates over {WIDTH}": subspace,
    f"RBM, {N_GATES} hidden units": plain(N_GATES),
    f"RBM, {N_GATES * WIDTH} hidden units": plain(N_GATES * WIDTH),
}


@torch.no_grad()
def features(model: hm.BoltzmannMachine, x: Tensor, *, groups: bool) -> Tensor:
    """Return the means of the hidden units or gates, row by row; with `groups` those of the open units, E[h s], too."""
    if isinstance(model, hm.RBM):
        return torch.cat([model.hidden_mean(rows.float()) for rows in x.split(2000)])
    found = []
    for rows in x.split(2000):
        h = model.gate_mean(rows.float())  # type: ignore[operator]
        s = model.subspace_mean(rows.float(), torch.ones_like(h))  # type: ignore[operator]
        found.append(torch.cat([h, (h.unsqueeze(-1) * s).flatten(1)], 1) if groups else h)
    return torch.cat(found)


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


def score(make: Callable[..., hm.BoltzmannMachine], rate: float, seed: int) -> list[tuple[float, float]]:
    """Train one model by CD-1; return the validation and test errors of a linear classifier of each of its readings."""
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
    found = []
    for groups in (False, True) if isinstance(model, hm.SubspaceRBM) else (False,):
        rows = [features(model, x, groups=groups) for x in splits]
        train, valid, test = ((x, y) for x, y in zip(rows, labels, strict=True) if y is not None)
        found.append(classify(train, valid, test))
    return found


def main() -> None:
    """Print the errors of all models, rates and seeds."""
    for name, make in MODELS.items():
        chosen, lowest = RATES[0], 1.0
        for seed in SEEDS:
            for rate in RATES if seed == SEEDS[0] else (chosen,):
                started = time.process_time()
                readings = score(make, rate, seed)
                valid = readings[0][0]
                if seed == SEEDS[0] and valid < lowest:
                    chosen, lowest = rate, valid
                seconds = time.process_time() - started
                told = "; with open units ".join(f"valid {v:.2%}, test {t:.2%}" for v, t in readings)
                print(f"{name}, rate {rate:g}, seed {seed}: {told} ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
