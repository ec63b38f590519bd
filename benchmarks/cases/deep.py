"""All layers of a convolutional deep belief network at once, as the paper trains them, through `hm.fit`."""

from __future__ import annotations

import torch

import harmonium as hm
from benchmarks import products, rows
from benchmarks.cases.convolution import FILTERS
from benchmarks.runner import FLOOR, OURS, Case, Contender
from harmonium.learning.starts import layer_rates


def _build(quick: bool) -> list[Contender]:
    channels, side, batch_size, n_updates = ([3, 4, 8, 16], 8, 8, 2) if quick else ([3, 64, 128, 256], 32, 128, 30)
    sizes = [(above, side >> i, side >> i) for i, above in enumerate(channels)]
    floors = [
        products.convolution_updates(lower, upper, **FILTERS, batch_size=batch_size, n_updates=n_updates)
        for lower, upper in zip(sizes, sizes[1:], strict=False)
    ]
    x = 255 * rows.binary_rows(batch_size * n_updates, *sizes[0])
    spec = ", ".join(f"conv {above} 4x4/2" for above in channels[1:])
    state: dict[str, hm.DBN] = {}

    def prepare() -> None:
        state["dbn"] = hm.DBN.from_spec(spec, shape=sizes[0], levels=255, generator=rows.generator())

    def run() -> None:
        dbn = state["dbn"]
        optimizer = torch.optim.Adam(layer_rates(dbn, 0.03), fused=True)
        hm.fit(
            dbn,
            x,
            hm.learning.objectives.SummedLayers(),
            optimizer=optimizer,
            epochs=1,
            batch_size=batch_size,
            generator=rows.generator(),
        )

    def run_floor() -> None:
        for one in floors:
            one()

    return [
        Contender(FLOOR, run_floor, "the bare convolutions of all layers, as in `convolution`"),
        Contender(
            OURS,
            run,
            "`hm.fit(dbn, images, SummedLayers(), optimizer=torch.optim.Adam(layer_rates(dbn, 0.03), fused=True), "
            "epochs=1)`, monitors at their default; mean field, 255 levels",
            prepare,
        ),
    ]


CASES = [
    Case(
        "deep",
        "joint training of a deep belief network, conv 64, 128, 256, 4×4/2, 255 levels, 32×32 in color, batch 128, "
        "30 updates: an epoch of 50,000 images is 13 times that",
        _build,
    )
]
