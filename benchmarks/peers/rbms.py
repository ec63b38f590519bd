"""The package rbms."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.runner import Contender


def epoch(x: np.ndarray, n_hidden: int, batch_size: int) -> Contender:
    """Return as many updates of `train` as an epoch has."""
    from rbms.dataset.dataset_class import RBMDataset
    from rbms.training.pcd import train

    n = len(x)
    data = RBMDataset(
        data=x,
        labels=np.zeros(n),
        weights=np.ones(n),
        names=np.arange(n),
        dataset_name="rows",
        is_binary=True,
        device="cpu",
    )
    n_updates = -(-n // batch_size)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            train(
                train_dataset=data,
                test_dataset=data,
                model_type="BBRBM",
                args=_arguments(Path(folder) / "rbm.h5", n_hidden, batch_size, n_updates),
                dtype=torch.float32,
                checkpoints=np.array([], dtype=int),
            )

    note = (
        '`train` with training_type="cd", gibbs_steps=1, no centering and no checkpoints, progress bar off: as many '
        "updates of full batches as the epoch has, rows drawn by a new permutation for every update; writes its "
        "learning rates to a file at every update; its CD-1 makes seven products (its default, PCD, six); normalizes "
        "the gradient; the rows are float32 before the clock starts"
    )
    return Contender("rbms", run, note)


def _arguments(file: Path, n_hidden: int, batch_size: int, n_updates: int) -> dict[str, Any]:
    return {
        "filename": str(file),
        "overwrite": True,
        "restore": False,
        "log": False,
        "device": "cpu",
        "dtype": torch.float32,
        "seed": 0,
        "train_size": 1.0,
        "test_size": None,
        "num_hiddens": n_hidden,
        "num_chains": batch_size,
        "batch_size": batch_size,
        "gibbs_steps": 1,
        "learning_rate": 0.01,
        "num_updates": n_updates + 1,  # it counts the model as it starts as update 1
        "training_type": "cd",
        "no_center": True,
        "beta": 1.0,
        "L1": 0.0,
        "L2": 0.0,
    }


def _model(weight: Tensor, b: Tensor, c: Tensor) -> Any:
    from rbms.bernoulli_bernoulli.classes import BBRBM

    return BBRBM(weight_matrix=weight, vbias=b, hbias=c)


def gibbs(weight: Tensor, b: Tensor, c: Tensor, start: Tensor, n_steps: int) -> Contender:
    """Return `n_steps` of `sample_state`."""
    model = _model(weight, b, c)

    @torch.no_grad()
    def run() -> None:
        chains = model.init_chains(num_samples=len(start), start_v=start)
        model.sample_state(chains=chains, n_steps=n_steps)

    return Contender("rbms", run, "`sample_state`; draws the hidden units once more at the end")


def ais(weight: Tensor, b: Tensor, c: Tensor, n_chains: int, n_betas: int) -> Contender:
    """Return its annealed importance sampling."""
    from rbms.partition_function.ais import compute_partition_function_ais

    model = _model(weight, b, c)

    @torch.no_grad()
    def run() -> None:
        compute_partition_function_ais(num_chains=n_chains, num_beta=n_betas, params=model)

    note = (
        "`compute_partition_function_ais`, the same number of equally spaced temperatures; anneals from its visible "
        "biases and makes a copy of all weights and five products for each temperature; log weights in float32 (ours "
        "in float64); returns no error bar"
    )
    return Contender("rbms", run, note)
