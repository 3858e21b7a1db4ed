"""Access to the emulators of GPUs, which a checkout has among its tests, and a package has not."""

from __future__ import annotations

import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

CHECKOUT = Path(__file__).parents[3]
SUPPORT = CHECKOUT / "tests" / "support"
PARTS = (SUPPORT / "localrun_testing" / "emulator", CHECKOUT / "kernels" / "emulator")


def why_not_emulated(variable: str) -> str:
    """Why kernels cannot be emulated, as `variable` asks for; empty where they can."""
    if not all(part.is_dir() for part in PARTS):
        return f"{variable}=1 needs a checkout of localrun: its emulator is not in the package"
    return "" if shutil.which("g++") else f"{variable}=1 needs g++, which compiles the kernels for this processor"


def emulated_device(platform: Literal["cuda", "metal"]) -> Any:
    """A device that computes on the processor."""
    if str(SUPPORT) not in sys.path:
        sys.path.append(str(SUPPORT))
    return import_module(f"localrun_testing.emulator.{platform}").emulated_device()
