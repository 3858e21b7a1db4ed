"""Events of an answer that calls tools, besides those of its generations."""

from localrun.base.content import CallPart, ResultPart
from localrun.base.dataclass import dataclass
from localrun.base.events import Done, Event


@dataclass(frozen=True, slots=True)
class CallsMade:
    """A generation ended in `calls`; the result of each follows. `done` is the end of that generation."""

    done: Done
    calls: tuple[CallPart, ...]


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The call with this id runs: it was found right, and allowed."""

    id: str


@dataclass(frozen=True, slots=True)
class ToolDone:
    """A call has its result. One that was refused, or was wrong, never started."""

    result: ResultPart


TurnEvent = Event | CallsMade | ToolStarted | ToolDone
