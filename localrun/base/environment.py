"""Switches among the environment variables."""

import os


def is_switched_on(name: str) -> bool:
    """Whether this variable is there, and neither empty nor 0."""
    return os.environ.get(name, "") not in ("", "0")
