"""How localrun starts where it is installed."""

import os


def installed() -> dict[str, str]:
    """The environment, but Python keeps what it compiles, as installed: later starts compile nothing."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
