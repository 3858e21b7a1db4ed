"""A short message in the corner. It may name what others have named, so it is made safe first."""

from typing import Any

from textual.app import App
from textual.dom import DOMNode
from textual.markup import escape
from textual.notifications import SeverityLevel

from localrun.base.errors import LocalrunError
from localrun.base.options import in_app
from localrun.base.sanitize import clean


class LineToasts(App[Any]):
    """Toasts have their title and text in one line, which fits the first line of a chat and covers none of its text."""

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        text = message if markup else escape(message)
        line = " · ".join(filter(None, [title and f"[bold]{escape(title)}[/bold]", text]))
        super().notify(line, severity=severity, timeout=timeout)


def toast(node: DOMNode, title: str, text: str = "", severity: SeverityLevel = "information") -> None:
    """Show it for a few seconds."""
    title, text = clean(title, keep_newlines=False), clean(text)
    node.app.notify(in_app(text), title=in_app(title), severity=severity, markup=False)


def toast_error(node: DOMNode, error: LocalrunError) -> None:
    """Show an error, and what to try."""
    toast(node, error.message, error.hint, "error")
