"""Files that are named after an @ inside a message."""

import re
from collections.abc import Callable

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.chat.left_out import Attached

_NAMED = re.compile(r'(?<!\S)@(?:"(?P<quoted>[^"]+)"|(?P<bare>\S*[^\s.,;:!?)"]))')
_TOLD = 3  # names that stay text are told; of more, how many there are


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Files of a message, whose `text` has their names without the @. `refused`: what stays text, as typed, and why."""

    text: str
    attached: list[Attached]
    refused: list[tuple[str, UsageError]]

    @property
    def words(self) -> str:
        """A sentence about all that does not go along; empty where everything does."""
        stay = [f"{typed} stays text: {error.message}" for typed, error in self.refused]
        more = [f"and {len(stay) - _TOLD:,} more"] if len(stay) > _TOLD else []
        return "; ".join([*(one.left_out for one in self.attached if one.left_out), *stay[:_TOLD], *more])


def names_files(text: str) -> bool:
    """Whether a text has an @ with a name behind it."""
    return _NAMED.search(text) is not None


def read_named(text: str, read: Callable[[str], Attached]) -> NamedFiles:
    """Have each file that is named in a text read, as it is typed behind the @; a UsageError leaves it text."""
    found = NamedFiles("", [], [])

    def take(named: re.Match[str]) -> str:
        wanted = named["quoted"] or named["bare"]
        try:
            found.attached.append(read(wanted))
        except UsageError as error:
            found.refused.append((named[0], error))
            return named[0]
        return wanted

    return NamedFiles(_NAMED.sub(take, text), found.attached, found.refused)
