"""Data: embedded sets, readers of files, tables, splits and transforms."""

from harmonium.data.amat import read_amat
from harmonium.data.array import read_array
from harmonium.data.base import Data
from harmonium.data.block_rows import BlockRows
from harmonium.data.cifar import read_cifar
from harmonium.data.column import Column
from harmonium.data.directory import DataDirectory, MissingDataError
from harmonium.data.extras import MissingExtraError
from harmonium.data.fetch import fetch
from harmonium.data.films import bouncing_balls
from harmonium.data.idx import read_idx
from harmonium.data.images import read_images
from harmonium.data.infer import infer_columns
from harmonium.data.lattice import bars_and_stripes, ising, ising_law
from harmonium.data.load import DATASETS, EMBEDDED, load, options_of
from harmonium.data.local_contrast import local_contrast
from harmonium.data.local_whitening import LocalWhitening, whiten_locally
from harmonium.data.parquet_rows import ParquetRows
from harmonium.data.patches import draw_patches
from harmonium.data.rows_file import RowsFile
from harmonium.data.rows_folder import RowsFolder
from harmonium.data.split import split, split_indices
from harmonium.data.table import decode, encode, log_slopes, read_columns, read_table
from harmonium.data.toys import checkerboard, circles, mixture, mixture_log_density, moons, pinwheel
from harmonium.data.transformed import shifted_dots, turned_dots
from harmonium.data.transforms import (
    DESCRIPTIONS,
    BinarizeEachTime,
    Whitening,
    binarize,
    dequantize,
    scale,
    standardize,
    unstandardize,
    whiten,
)

__all__ = [
    "DATASETS",
    "DESCRIPTIONS",
    "EMBEDDED",
    "BinarizeEachTime",
    "BlockRows",
    "Column",
    "Data",
    "DataDirectory",
    "LocalWhitening",
    "MissingDataError",
    "MissingExtraError",
    "ParquetRows",
    "RowsFile",
    "RowsFolder",
    "Whitening",
    "bars_and_stripes",
    "binarize",
    "bouncing_balls",
    "checkerboard",
    "circles",
    "decode",
    "dequantize",
    "draw_patches",
    "encode",
    "fetch",
    "infer_columns",
    "ising",
    "ising_law",
    "load",
    "local_contrast",
    "log_slopes",
    "mixture",
    "mixture_log_density",
    "moons",
    "options_of",
    "pinwheel",
    "read_amat",
    "read_array",
    "read_cifar",
    "read_columns",
    "read_idx",
    "read_images",
    "read_table",
    "scale",
    "shifted_dots",
    "split",
    "split_indices",
    "standardize",
    "turned_dots",
    "unstandardize",
    "whiten",
    "whiten_locally",
]
