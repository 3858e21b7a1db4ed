"""Steps of few rows as one launch each: a decode step has hundreds, which take longer to ask for than small models take
to compute."""

from __future__ import annotations

from collections.abc import Sequence

from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.translator import Bucket
from localrun.base.dataclass import dataclass

GRAPH_ROWS = 8  # of a step, at most: larger ones compute for longer than they take to ask for
MOST_GRAPHS = 32  # kept; each is some hundred kilobytes of the device


@dataclass(frozen=True, slots=True)
class StepKey:
    """Everything that decides which launches a pass over the model has."""

    bucket: Bucket
    logits: int  # rows of logits of the step, padding included; 0: none are of this pass
    ends: bool  # whether the logits are computed after it
    drawn: bool = False  # whether its tokens are those that the device has drawn in the step before


class Graphs:
    """Recorded launches by their keys; the newest of them."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.kept: dict[StepKey, Launch] = {}
        self.refused = set[StepKey]()  # for which there was no room
        self.n_without_room = 0  # steps of these

    def get(self, key: StepKey) -> Launch | None:
        return self.kept.get(key)

    def add(self, key: StepKey, launches: Sequence[Launch]) -> None:
        """Record launches that have just run, where there are few rows and the device can. What it has no room for is
        tried again when other memory has moved."""
        if key.bucket.rows > GRAPH_ROWS or key.bucket.span or not self.device.has_graphs:
            return
        recorded = None if key in self.refused else self.device.record(launches)
        if recorded is None:
            self.refused.add(key)
            self.n_without_room += 1
            return
        if len(self.kept) == MOST_GRAPHS:
            self.kept.pop(next(iter(self.kept)))
        self.kept[key] = recorded

    def clear(self) -> None:
        """Forget all: what they point to is about to go."""
        self.kept.clear()
        self.refused.clear()
