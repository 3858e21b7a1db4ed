"""localrun: run a language model on your own machine."""

TYPE_CHECKING = False  # as type checkers take it; typing takes a while to import, and Ctrl-C is not yet taken care of
if TYPE_CHECKING:
    from typing import Any

    from localrun.client.llm import LLM

__all__ = ["LLM", "__version__"]


def __getattr__(name: str) -> "Any":
    """`LLM` and `__version__` cost an import each, so they wait until someone asks."""
    if name == "LLM":
        from localrun.client.llm import LLM

        return LLM
    if name == "__version__":
        from importlib.metadata import version

        return version("localrun")
    raise AttributeError(f"module 'localrun' has no attribute {name!r}")
