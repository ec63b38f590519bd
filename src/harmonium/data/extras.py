"""Optional packages, imported only where they are needed."""

from __future__ import annotations

import importlib
from typing import Any


class MissingExtraError(ImportError):
    """An optional package is not installed; the message names the extra that brings it."""


def require(module: str, extra: str, purpose: str) -> Any:
    """Import and return `module`, or say which extra of harmonium to install.

    >>> require("no_such_package", "tables", "reading Parquet files")
    Traceback (most recent call last):
    ...
    harmonium.data.extras.MissingExtraError: reading Parquet files needs the package no_such_package, ...
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package}, which is not installed. "
            f'Install it with: pip install "harmonium[{extra}]"'
        ) from error
