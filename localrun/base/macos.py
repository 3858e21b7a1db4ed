"""Facts about the machine from macOS, by sysctl."""

import ctypes
from contextlib import suppress

_MOST_BYTES = 256


def sysctl_number(name: str) -> int | None:
    """A whole number; None where the system does not know the name."""
    data = _sysctl(name)
    return int.from_bytes(data, "little") if len(data) in (4, 8) else None


def sysctl_text(name: str) -> str:
    """A text; empty where the system does not know the name."""
    return _sysctl(name).partition(b"\0")[0].decode("utf-8", "replace").strip()


def _sysctl(name: str) -> bytes:
    found, size = ctypes.create_string_buffer(_MOST_BYTES), ctypes.c_size_t(_MOST_BYTES)
    with suppress(OSError, AttributeError, TypeError):  # the last two: not macOS, Windows
        if system().sysctlbyname(name.encode(), found, ctypes.byref(size), None, ctypes.c_size_t(0)) == 0:
            return found.raw[: size.value]
    return b""


def system() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None)
