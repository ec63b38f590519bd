"""Plays: what a person can do with a trained model and see what comes of it. A kind says which suit it."""

from harmonium.runs.plays.base import Play, Session
from harmonium.runs.plays.chains import Chains, Samples
from harmonium.runs.plays.drawing import Drawing
from harmonium.runs.plays.looks import Filters, Reconstructions
from harmonium.runs.plays.memory import Memory
from harmonium.runs.plays.plane import Plane
from harmonium.runs.plays.row import Row
from harmonium.runs.plays.walk import Walk

__all__ = [
    "Chains",
    "Drawing",
    "Filters",
    "Memory",
    "Plane",
    "Play",
    "Reconstructions",
    "Row",
    "Samples",
    "Session",
    "Walk",
]
