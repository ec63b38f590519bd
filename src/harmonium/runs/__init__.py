"""Runs: the folder that a training leaves, its configuration, and exact resume."""

from harmonium.runs.build import HIDDEN, MODELS, OBJECTIVES, Kind
from harmonium.runs.checkpoints import Checkpoints, DamagedCheckpointError
from harmonium.runs.config import Config, ConfigError
from harmonium.runs.draw import draw
from harmonium.runs.evaluate import evaluate
from harmonium.runs.export import write_array, write_table
from harmonium.runs.generation import score_samples
from harmonium.runs.inpaint import Inpainting, inpaint
from harmonium.runs.inventory import Available, inventory
from harmonium.runs.prepare import Prepared, prepare
from harmonium.runs.recipes import RECIPES, recipe
from harmonium.runs.run import Run, find_runs, next_folder, settled
from harmonium.runs.train import train

__all__ = [
    "HIDDEN",
    "MODELS",
    "OBJECTIVES",
    "RECIPES",
    "Available",
    "Checkpoints",
    "Config",
    "ConfigError",
    "DamagedCheckpointError",
    "Inpainting",
    "Kind",
    "Prepared",
    "Run",
    "draw",
    "evaluate",
    "find_runs",
    "inpaint",
    "inventory",
    "next_folder",
    "prepare",
    "recipe",
    "score_samples",
    "settled",
    "train",
    "write_array",
    "write_table",
]
