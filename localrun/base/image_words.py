"""Progress and cost of encoding images in words, for every face."""

from collections.abc import Mapping
from typing import Any

from localrun.base.events import ImageProgress
from localrun.base.units import gib


def cost_words(images: Mapping[str, Any]) -> str:
    """Tokens and memory of images, as `show --json` has them."""
    tokens = ", ".join(f"{n:,} at {size.replace('x', ' × ')}" for size, n in images["tokens"].items())
    return f"tokens {tokens}; {gib(images['room_bytes'])} of memory from the first one on"


def looking_words(progress: ImageProgress) -> str:
    """The image that is encoded, and how much of it is."""
    which = "the image" if progress.total == 1 else f"image {progress.number + 1} of {progress.total}"
    return f"looking at {which}: {progress.share:.0%}"
