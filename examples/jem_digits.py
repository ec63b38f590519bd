"""A joint energy model of the 8x8 digits: classify them, draw them, tell them from noise.

The example of section 6.4 of Tomczak's chapter with what keeps it from diverging: persistent chains in a replay buffer,
a little input noise, and a guard. Run `python examples/jem_digits.py --seeds 10` for the table of the results; the
samples of the last seed go into `--output`.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

import harmonium as hm
from harmonium.data import load, scale
from harmonium.evaluation.classify.calibration import expected_calibration_error
from harmonium.evaluation.ood import auroc
from harmonium.evaluation.outlier_scores import outlier_scores
from harmonium.learning.monitors import Guard, JointCurves
from harmonium.learning.objectives import ReplayBuffer


def train(seed: int, *, epochs: int, smoke: bool) -> tuple[hm.JEM, dict[str, float], torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    data = load("digits")
    x, valid, test = (2 * scale(part, 16) - 1 for part in (data.train, data.valid, data.test))
    started = time.perf_counter()
    jem = hm.JEM(hm.MLP((1, 8, 8), 10, hidden=(256, 256), generator=generator))
    objective = hm.learning.objectives.JointLikelihood(
        n_steps=2 if smoke else 20,
        sampler=hm.Langevin(step_size=0.2, noise=0.05),
        buffer=ReplayBuffer(n_chains=2000, renewal=0.02),
        input_noise=0.15,
    )
    optimizer = torch.optim.Adam(jem.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [int(0.6 * epochs), int(0.85 * epochs)], gamma=0.3)
    guard = Guard()
    history = hm.fit(
        jem,
        (x, data.train_labels),
        objective,
        optimizer=optimizer,
        epochs=epochs,
        batch_size=128,
        schedule=schedule,
        monitors=[JointCurves((valid, data.valid_labels)), guard],
        generator=generator,
    )
    seconds = time.perf_counter() - started
    classes = torch.arange(10).repeat(8)
    samples = hm.sample(
        jem.given_class(classes),
        80,
        sampler=objective.sampler,
        n_steps=5 if smoke else 500,
        generator=generator,
    )
    noise = hm.laws.UniformLaw((1, 8, 8)).initial(len(test), generator=generator)
    scores, other = outlier_scores(jem, test), outlier_scores(jem, noise)
    result = {
        "seed": seed,
        "accuracy": (jem.classify(test) == data.test_labels).double().mean().item(),
        "calibration_error": expected_calibration_error(jem.predict_proba(test), data.test_labels),
        "auroc_noise": auroc(scores["free_energy"], other["free_energy"]),
        "sample_agreement": (jem.classify(samples) == classes).double().mean().item(),
        "validation_loss": history.last["validation_loss"],
        "rollbacks": guard.rollbacks,
        "seconds": seconds,
    }
    return jem, result, samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--output", type=Path, help="a folder for the samples and the results")
    parser.add_argument("--smoke", action="store_true", help="finish in seconds, to see that it runs")
    arguments = parser.parse_args()
    results = []
    for seed in range(arguments.seeds):
        _jem, result, samples = train(seed, epochs=2 if arguments.smoke else arguments.epochs, smoke=arguments.smoke)
        results.append(result)
        print({name: round(value, 4) for name, value in result.items()}, flush=True)
        if arguments.output is not None:
            from harmonium.plots.grids import save_grid

            arguments.output.mkdir(parents=True, exist_ok=True)
            save_grid(samples, (1, 8, 8), arguments.output / "samples.png", n_columns=10, limits=(-1.0, 1.0))
            (arguments.output / "results.json").write_text(json.dumps(results, indent=1))
    table = torch.tensor([[r["accuracy"], r["seconds"]] for r in results], dtype=torch.float64)
    spread = table.std(0) if len(table) > 1 else torch.zeros(2)
    print(
        f"accuracy {table[:, 0].mean():.4f} ± {spread[0]:.4f}, {table[:, 1].mean():.0f} ± {spread[1]:.0f} s, "
        f"{len(results)} of {arguments.seeds} seeds finished"
    )


if __name__ == "__main__":
    main()
