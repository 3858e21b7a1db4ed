"""Figures of a GPU beside those of an answer."""

from localrun.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """Steps of an answer on a GPU: those begun before their token was known, and decode steps that were no graph."""

    steps_ahead: int = 0  # begun with the token that the device drew
    steps_ahead_used: int = 0  # of these, those of the answer: the others were begun for nothing
    steps_without_room: int = 0  # whose kernels were launched one by one, since memory had no room for a graph

    def plus(self, other: "DeviceFigures") -> "DeviceFigures":
        """The steps of both."""
        return DeviceFigures(
            self.steps_ahead + other.steps_ahead,
            self.steps_ahead_used + other.steps_ahead_used,
            self.steps_without_room + other.steps_without_room,
        )

    def since(self, before: "DeviceFigures") -> "DeviceFigures":
        """The steps after those that were counted `before`."""
        return DeviceFigures(
            self.steps_ahead - before.steps_ahead,
            self.steps_ahead_used - before.steps_ahead_used,
            self.steps_without_room - before.steps_without_room,
        )
