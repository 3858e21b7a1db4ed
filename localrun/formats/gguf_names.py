"""GGUF file names: whether a file is one, and which part of a split model."""

import re

_PART = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)", re.DOTALL | re.IGNORECASE)


def is_gguf(name: str) -> bool:
    """Whether a file of this name is a GGUF: Windows writes the ending in capitals, too."""
    return name.lower().endswith(".gguf")


def is_weights(name: str) -> bool:
    """Whether a file of this name holds tensors that we read."""
    return is_gguf(name) or name.endswith(".safetensors")


def part_number(name: str) -> tuple[int, int]:
    """Which part of how many a file is, counted from 1; (1, 1) for one that is whole."""
    match = _PART.fullmatch(name)
    return (int(match["number"]), int(match["count"])) if match else (1, 1)


def whole_name(name: str) -> str:
    """The name of a file, its part left out: `m-Q8_0.gguf` for `m-Q8_0-00001-of-00002.gguf`."""
    match = _PART.fullmatch(name)
    return match["stem"] + match["suffix"] if match else name


def part_names(name: str) -> list[str]:
    """The names of all parts of the model that a file is of, in order; its own where it is whole."""
    match = _PART.fullmatch(name)
    if match is None:
        return [name]
    numbers = range(1, int(match["count"]) + 1)
    return [f"{match['stem']}-{number:05d}-of-{match['count']}{match['suffix']}" for number in numbers]
