"""Plays: what a person can do with a trained model and see what comes of it. A kind says which suit it."""

from harmonium.runs.plays.analogy import Analogy
from harmonium.runs.plays.base import Play, Session
from harmonium.runs.plays.chains import Chains, Samples
from harmonium.runs.plays.drawing import Drawing
from harmonium.runs.plays.looks import Filters, Reconstructions
from harmonium.runs.plays.memory import Memory
from harmonium.runs.plays.plane import Plane
from harmonium.runs.plays.row import Row
from harmonium.runs.plays.sequel import Sequel
from harmonium.runs.plays.shelf import Shelf
from harmonium.runs.plays.walk import Walk

__all__ = [
    "Analogy",
    "Chains",
    "Drawing",
    "Sequel",
    "Filters",
    "Memory",
    "Plane",
    "Play",
    "Reconstructions",
    "Row",
    "Samples",
    "Session",
    "Shelf",
    "Walk",
]
