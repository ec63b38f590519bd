"""Inference: how hidden layers are filled in given the observed ones. Chosen by an objective, never by a model."""

from harmonium.inference.base import Inference
from harmonium.inference.clamped_chains import ClampedChains
from harmonium.inference.closed_form import ClosedForm
from harmonium.inference.mean_field import MeanField

__all__ = ["ClampedChains", "ClosedForm", "Inference", "MeanField"]
