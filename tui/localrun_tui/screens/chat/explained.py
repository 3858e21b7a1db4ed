"""Figures that lead to the page of Explain about them."""

from collections.abc import Iterable

from textual.content import Content
from textual.style import Style

from localrun.diagnose.diagnosis import Cause

_PAGES: dict[Cause, str] = {
    "changed": "reuse",
    "evicted": "reuse",
    "new": "reuse",
    "restore": "reuse",
    "weights": "precision",
    "cache": "cache",
    "attention": "cache",
    "disk": "memory",
    "paging": "memory",
    "beside": "batch",
    "queue": "batch",
}


def page_about(cause: Cause) -> str:
    """The topic that tells most of what an answer waited for."""
    return _PAGES.get(cause, "phases")


def explained(lines: Iterable[Content], topic: str) -> list[Content]:
    """The same lines, each of which opens the page of a topic when it is clicked."""
    opens = Style.from_meta({"@click": f"app.explain({topic!r})"})
    return [line.stylize(opens) for line in lines]
