"""The live page: watch the runs of a folder as they learn, and play with their models. An adapter: no mathematics."""

from harmonium.web.launch import Launched, launch, show

__all__ = ["Launched", "launch", "show"]
