"""Whether a model sees images."""

from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.formats.source import TensorSource
from localrun.model.seeing import may_see

if TYPE_CHECKING:
    from localrun.engine.tower import OpenedTower

NO_EYES = "choose a model that sees, such as one of Qwen3.5's or Gemma 4's, with its mmproj file in the same folder"
IN_MAIN_MEMORY = "images are read in main memory so far: load it with --backend cpu"


@dataclass(frozen=True, slots=True)
class Sight:
    """The tower of a model, or why there is none, as a hint for the user."""

    tower: "OpenedTower | None"
    why_not: str = NO_EYES


BLIND = Sight(None)


def find_sight(source: TensorSource, hidden_size: int) -> Sight:
    """The tower that makes rows of this size for a model, opened and not loaded."""
    if not may_see(source):
        return BLIND
    from localrun.engine.tower import find_tower  # a model of text starts without it

    tower, why_not = find_tower(source, hidden_size)
    return Sight(tower, why_not or NO_EYES)
