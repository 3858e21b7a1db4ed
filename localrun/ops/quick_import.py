"""Importing torch in two thirds of the time, in processes that only run models."""

import sys
from types import ModuleType

# Shape inference for compiling and exporting, a third of what `import torch` takes; nothing that runs calls it.
UNUSED = "torch._meta_registrations"


def import_torch_quickly() -> None:
    """Import torch without the part that only compilers use; for our own processes, a library leaves torch whole."""
    if "torch" in sys.modules:
        return
    sys.modules[UNUSED] = ModuleType(UNUSED)
    try:
        import torch  # noqa: F401
    finally:
        del sys.modules[UNUSED]
