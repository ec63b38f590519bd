"""The experiment on faces: a deep belief network that generates color pictures, scored beside Gaussian baselines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harmonium.evaluation.images.feature_network import FeatureNetwork
from harmonium.evaluation.images.frechet import with_error
from harmonium.experiments.base import Message, quiet
from harmonium.experiments.faces.folder import FaceFolder
from harmonium.experiments.faces.pictures import face_panels
from harmonium.experiments.faces.scores import score_faces
from harmonium.experiments.faces.training import train_faces
from harmonium.learning import Callback
from harmonium.runs.folder import MODEL
from harmonium.runs.panels import Lines, Panel


@dataclass(eq=False, kw_only=True)
class Faces(FaceFolder):
    """One experiment on faces: data, size, network, seed."""

    def train(self, *, callbacks: Sequence[Callback] = (), say: Message = quiet) -> bool:
        """Train the lower machines, then the top one on their codes."""
        self.begin()
        if (self.folder / MODEL).is_file():
            return True
        with self.writing():
            return train_faces(self, callbacks=callbacks, say=say)

    def score(self, *, network: FeatureNetwork | None = None, say: Message = quiet) -> dict[str, Any]:
        """Return the scores of samples on a feature network, EfficientNet-Lite0 if None, and their curve over time."""
        self.begin()
        return score_faces(self, network=network, say=say)

    def headline(self) -> str:
        """Return the Fréchet distances."""
        return ", ".join(_distance(records["dbn"]["frechet"]) for records in (self.evaluation() or {}).values())

    def sentences(self) -> list[str]:
        """Return the scores of the samples, and whether they are copies."""
        found = (self.evaluation() or {}).values()
        return [f"{records['dbn'][part]['text']}." for records in found for part in ("frechet", "shares")] + [
            f"{records['copies']['text']}." for records in list(found)[:1]
        ]

    def panels(self) -> list[Panel]:
        """Return pictures, and the distance of the samples while it learned."""
        found = (self.evaluation() or {}).items()
        curves = [_curve(name, records) for name, records in found if len(records["curve"]) > 1]
        return [*face_panels(self), *curves]


def _distance(score: dict[str, Any]) -> str:
    return f"{score['score']} {with_error(score['value'], score['error'])}"


def _curve(name: str, records: dict[str, Any]) -> Panel:
    score, curve = records["dbn"]["frechet"], records["curve"]
    lines = Lines(
        f"curve-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}",
        "With the baselines as level lines.",
        [point["cpu_seconds"] / 60 for point in curve],
        {"samples": [point["frechet"] for point in curve]},
        title="Samples while it learns",
        x_label="CPU minutes of training",
        y_label=f"{score['score']} ({score['network']})",
        levels={
            title: records[name]["frechet"]["value"]
            for name, title in (("pca", "PCA, as many as codes"), ("pca_top", "PCA, as many as the top"))
            if name in records
        },
    )
    return Panel("Distance over time", f"On {score['network']}; lower is better.", [lines])
