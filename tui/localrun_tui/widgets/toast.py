"""A short message in the corner. It may name what others have named, so it is made safe first."""

from typing import Literal

from textual.dom import DOMNode

from localrun.base.errors import LocalrunError
from localrun.base.sanitize import clean


def toast(
    node: DOMNode, title: str, text: str = "", severity: Literal["information", "warning", "error"] = "information"
) -> None:
    """Show it for a few seconds."""
    node.app.notify(clean(text), title=clean(title, keep_newlines=False), severity=severity, markup=False)


def toast_error(node: DOMNode, error: LocalrunError) -> None:
    """Show an error, and what to try."""
    toast(node, error.message, error.hint, "error")
