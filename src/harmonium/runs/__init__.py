"""Runs: the folder that a training leaves, its configuration, and exact resume."""

from harmonium.runs.build import prepare
from harmonium.runs.checkpoints import Checkpoints, DamagedCheckpointError
from harmonium.runs.compare import Compared, Difference, compare, differing_settings, varying_settings
from harmonium.runs.config import ConfigError, read_config, resolve
from harmonium.runs.export import write_array, write_cells, write_table
from harmonium.runs.fine_tune import fine_tune
from harmonium.runs.folder import RunFolder, find_folders
from harmonium.runs.generation import score_samples
from harmonium.runs.inpaint import Inpainting, inpaint
from harmonium.runs.inventory import Available, inventory
from harmonium.runs.kinds import KINDS, Kind
from harmonium.runs.recorder import Recorder
from harmonium.runs.run import Run, next_folder, settled
from harmonium.runs.settings import Config, Section
from harmonium.runs.train import train
from harmonium.runs.use import LOG_Z_METHODS, draw, draw_means, estimate_log_z, evaluate, write_log_z
from harmonium.runs.values import Prepared

__all__ = [
    "KINDS",
    "LOG_Z_METHODS",
    "Available",
    "Checkpoints",
    "Compared",
    "Config",
    "ConfigError",
    "DamagedCheckpointError",
    "Difference",
    "Inpainting",
    "Kind",
    "Prepared",
    "Recorder",
    "Run",
    "RunFolder",
    "Section",
    "compare",
    "differing_settings",
    "draw",
    "estimate_log_z",
    "draw_means",
    "evaluate",
    "find_folders",
    "fine_tune",
    "inpaint",
    "inventory",
    "next_folder",
    "prepare",
    "read_config",
    "resolve",
    "score_samples",
    "settled",
    "train",
    "varying_settings",
    "write_array",
    "write_cells",
    "write_log_z",
    "write_table",
]
