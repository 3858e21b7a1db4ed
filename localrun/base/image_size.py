"""Sizes of an image for a model: how many tokens it may take at most."""

from collections.abc import Mapping
from typing import Any

IMAGE_ROWS = 1024  # tokens of an image at most, unless fewer are wished for: encoding more takes minutes on a CPU
SIZES = {"small": 128, "medium": 256, "full": IMAGE_ROWS}  # that a user may choose
ImageKey = tuple[str, int]  # an image of a request: the sha256 of its file, and how many tokens it may take at most


def size_name(most_rows: int) -> str:
    """The name of a size; of one without a name, its tokens."""
    return next((name for name, rows in SIZES.items() if rows == most_rows), f"{most_rows:,} tokens")


def image_key(part: Mapping[str, Any]) -> ImageKey:
    """The key of an image in a list of parts in the OpenAI shape."""
    return str(part.get("sha256")), part.get("most_rows", IMAGE_ROWS)
