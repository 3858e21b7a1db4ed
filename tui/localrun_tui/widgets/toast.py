"""A short message in the corner. It may name what others have named, so it is made safe first."""

from typing import Literal

from textual.dom import DOMNode

from localrun.base.errors import LocalrunError
from localrun.base.options import in_app
from localrun.base.sanitize import clean


def toast(
    node: DOMNode, title: str, text: str = "", severity: Literal["information", "warning", "error"] = "information"
) -> None:
    """Show it for a few seconds."""
    title, text = clean(title, keep_newlines=False), clean(text)
    node.app.notify(in_app(text), title=in_app(title), severity=severity, markup=False)


def toast_error(node: DOMNode, error: LocalrunError) -> None:
    """Show an error, and what to try."""
    toast(node, error.message, error.hint, "error")
