"""What is watched while a model learns, in words: which metrics share a chart, what they measure, how to read them."""

from __future__ import annotations

PANELS: tuple[tuple[str, ...], ...] = (
    ("loss", "validation_loss"),
    ("generation_loss", "validation_generation_loss"),
    ("classification_loss", "validation_classification_loss"),
    ("validation_accuracy",),
    ("log_likelihood", "validation_log_likelihood"),
    ("pseudo_likelihood",),
    tuple(f"unexplained_{i}" for i in range(1, 5)),
    tuple(f"unexplained_{i}" for i in range(5, 9)),
    ("reconstruction",),
    ("free_energy", "validation_free_energy"),
    ("free_energy_gap",),
    ("contrast",),
    ("activity",),
    tuple(f"activity_{i}" for i in range(1, 5)),
    tuple(f"activity_{i}" for i in range(5, 9)),
    ("dead", "saturated"),
    ("r_hat",),
    ("ess",),
    ("gradient_norm",),
    ("saturation",),
    ("rollbacks",),
)
"""The panels that are drawn unless told otherwise, those without records left out."""

TITLES = {
    "loss": ("L = L_clf + L_gen", "nats a sample"),
    "generation_loss": ("L_gen = F(data) − F(samples)", "nats a sample"),
    "classification_loss": ("L_clf, the cross-entropy", "nats a sample"),
    "validation_accuracy": ("Validation accuracy", "share of right classes"),
    "gradient_norm": ("Length of the gradient", "at the last update"),
    "saturation": ("Chains in a corner of the box", "share"),
    "rollbacks": ("Returns of the guard", "so far"),
    "log_likelihood": ("Log-likelihood", "nats a sample"),
    "pseudo_likelihood": ("Pseudo-likelihood", "nats a sample"),
    "unexplained_1": ("Unexplained share of each machine's data", "1 is the mean"),
    "unexplained_5": ("Unexplained share of each machine's data", "1 is the mean"),
    "reconstruction": ("Reconstruction error", "mean squared error"),
    "free_energy": ("Free energy of the data", "nats"),
    "free_energy_gap": ("Free energy, training minus validation", "nats"),
    "contrast": ("Free energy, data minus chains", "nats"),
    "activity": ("Mean hidden activity", "share of the range"),
    "activity_1": ("Mean hidden activity by layer", "share of the range"),
    "activity_5": ("Mean hidden activity by layer", "share of the range"),
    "dead": ("Hidden units without information", "units"),
    "r_hat": ("Mixing of the chains: R-hat", "R-hat"),
    "ess": ("Effective sample size of the chains", "draws"),
}
LABELS = {
    "loss": "training",
    "validation_loss": "validation",
    "generation_loss": "training",
    "validation_generation_loss": "validation",
    "classification_loss": "training",
    "validation_classification_loss": "validation",
    "log_likelihood": "training",
    "validation_log_likelihood": "validation",
    "free_energy": "training",
    "validation_free_energy": "validation",
    "dead": "never fire",
    "saturated": "always on",
    **{f"{name}_{i}": f"layer {i}" for name in ("unexplained", "activity") for i in range(1, 9)},
}
COUNTS = {"dead", "ess", "rollbacks"}
LEVELS = {"free_energy_gap": 0.0, "contrast": 0.0, "generation_loss": 0.0, "r_hat": 1.0, "unexplained_1": 1.0}

CAPTIONS = {
    "loss": "The objective of a joint model; the training curve is the mean over each epoch.",
    "generation_loss": "Near zero while samples are as probable as data; it is no likelihood. A runaway is divergence.",
    "classification_loss": "−ln p(y|x), in training with noise added to the data.",
    "validation_accuracy": "The share of validation samples whose most probable class is right.",
    "gradient_norm": "The guard returns to a good state when it jumps.",
    "saturation": "The guard returns to a good state when most chains stand there.",
    "rollbacks": "How often the guard went back to the last good state: 0 is a training that never diverged.",
    "log_likelihood": "Followed by annealed importance sampling along the training path; higher is better.",
    "validation_log_likelihood": "Of the observed values, as the model sees them. The best parameters are kept.",
    "pseudo_likelihood": "A cheap stand-in for the likelihood, from one unit a sample; higher is better.",
    **dict.fromkeys(
        ("unexplained_1", "unexplained_5"),
        "Of one pass up and down in each machine, on rows of the whole epoch: 1 is no better than the mean.",
    ),
    "reconstruction": "Of one pass up and down. It may fall while the model gets worse: a sanity check.",
    "free_energy": "Compared on data only: their level is arbitrary, their difference is not.",
    "free_energy_gap": "Far below zero, and falling: the model over-fits.",
    "contrast": "Stays near zero while the chains keep up with the model.",
    **dict.fromkeys(("activity", "activity_1", "activity_5"), "Over rows of the whole epoch."),
    "dead": "Units that never fire or are always on carry no features.",
    "r_hat": "Near 1: the chains agree with each other. Above 1.5: they do not mix.",
    "ess": "Of the last updates, among all chains.",
}
