"""Harmonium: Boltzmann machines and energy-based models."""
