"""The nearest model of the catalogue that can run, in place of one that cannot."""

import math
import re

from localrun.base.machine import memory
from localrun.hub.catalogue import BUILTIN, read_catalogue, suggest
from localrun.hub.catalogue_shape import catalogue_shape
from localrun.hub.names import words_of

_BILLIONS = re.compile(r"(\d+(?:\.\d+)?)b")


def nearest_runnable(name: str, n_params: int = 0) -> str:
    """Name of the nearest runnable model: of the same family if possible, and then nearest in size.

    The size comes from the name where `n_params` is unknown. Without any size, a model that suits this machine.
    """
    words = words_of(name)
    sizes = [float(found[1]) for word in words if (found := _BILLIONS.fullmatch(word))]
    wanted = n_params or int(1e9 * max(sizes, default=0.0))
    families = {word for word in words if word.isalpha() and len(word) > 2}
    best, best_rank = "", (False, -math.inf)
    for model, entry in read_catalogue().items():
        shape = catalogue_shape(entry) if model != BUILTIN else None
        if shape is None or shape.obstacle:
            continue
        is_kin = not families.isdisjoint(words_of(model))
        rank = (is_kin, -abs(math.log(shape.n_params / wanted)) if wanted else 0.0)
        if (is_kin or wanted) and rank > best_rank:
            best, best_rank = model, rank
    return best or suggest(memory().total)


def unsupported_message(why: str, name: str, n_params: int = 0) -> str:
    """Say why a model cannot be run, and name the nearest one that can."""
    return f"{why}; the nearest that runs is {nearest_runnable(name, n_params)}"
