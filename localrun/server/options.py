"""How a server listens and what it allows."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from localrun.base.dataclass import dataclass

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 11434  # Ollama's, so that its clients find us
LAST_PORT = 65_535
KEEP_ALIVE_SECONDS = 300.0
KEY_VARIABLE = "LOCALRUN_API_KEY"  # of the server and of its clients
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(-?)(\d+(?:\.\d+)?)(ms|s|m|h)")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#*\s]+")
_LONGEST = 10 * 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of `localrun serve`. `port` 0 takes any free one; `socket` is the path of a Unix socket instead."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    socket: str = ""
    api_key: str = ""
    allow_origins: tuple[str, ...] = ()
    parallel: int | None = None  # answers computed at once; None: as many as fit
    keep_alive: float | None = KEEP_ALIVE_SECONDS  # seconds without a request before a model is unloaded; None: never
    aliases: Mapping[str, str] = field(default_factory=dict)  # lower-case name to a model's; empty: to the loaded one
    any_model: bool = False  # the loaded model answers to every name
    no_swap: bool = False  # never load another model
    manage: bool = False  # download and delete models when asked to
    no_disk: bool = False  # keep nothing of conversations on disk
    store_disk: bool = False  # keep stored responses on disk


def port_number(value: object) -> int:
    """The number of a port; 0: any free one. Raises ValueError."""
    text = str(value)
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise ValueError(f"a port from 0 to {LAST_PORT} is needed; 0 takes a free one")
    return int(text)


def origin(value: object) -> str:
    """The origin of web pages, as browsers send it: without a path. Raises ValueError."""
    text = str(value).strip().removesuffix("/")
    if not _ORIGIN.fullmatch(text):
        raise ValueError("a site is needed, such as https://app.example or http://localhost:3000")
    return text


def read_aliases(texts: Iterable[str]) -> dict[str, str]:
    """Other names of models, written as `NAME=MODEL`, or `NAME` for whichever is loaded. Raises ValueError."""
    aliases = {}
    for text in texts:
        name, is_given, model = (part.strip() for part in text.partition("="))
        if not name.isprintable() or not name or (is_given and not model):
            raise ValueError(f"{text!r}: NAME=MODEL is needed, or NAME for the model that is loaded")
        aliases[name.lower()] = model
    return aliases


def seconds(value: object) -> float | None:
    """Parse a duration: `5m`, `1h30m`, `90`, 90; None for a negative one, which means for ever.

    Raises ValueError.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = -1.0 if value < 0 else float(min(value, 2 * _LONGEST))  # an int may be too large for a float
    else:
        text = str(value).strip()
        try:
            number = float(text)
        except ValueError:
            parts = _TIME.findall(text)
            if not parts or "".join(f"{sign}{amount}{unit}" for sign, amount, unit in parts) != text:
                raise ValueError("a time such as 5m, 1h or 90 (seconds) is needed; -1 is for ever") from None
            total = sum(float(amount) * _UNITS[unit] for _, amount, unit in parts)
            number = -total if text.startswith("-") else total
    if not math.isfinite(number) or number > _LONGEST:
        raise ValueError("that is too long a time; -1 is for ever")
    return None if number < 0 else number
