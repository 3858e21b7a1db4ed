"""How often Python looks for garbage."""

import gc

CONTAINERS = 200_000  # so many more are made than freed before young ones are looked through: 700 as Python comes


def look_less_often() -> None:
    """For a program's start, which makes objects by the hundred thousand that all stay: modules, a vocabulary.

    Looking through them took a fifth of the time to the first token. Only cycles wait longer to be freed.
    """
    gc.set_threshold(CONTAINERS)
