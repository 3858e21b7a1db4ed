"""Fits, tight, from disk or no: a sign and a word, readable without colours."""

from textual.content import Content

from localrun.fit.estimate import Verdict
from localrun.hub.alternatives import unsupported_message

_LOOKS: dict[Verdict, tuple[str, str]] = {
    "fits": ("✔ fits", "$text-success"),
    "tight": ("◐ tight", "$text-warning"),
    "disk": ("◌ disk", "$text-warning"),
    "no": ("✘ no", "$text-error"),
}
MEANING: dict[Verdict, str] = {
    "fits": "it fits in memory",
    "tight": "tight: close other programs",
    "disk": "slow: from disk",
    "no": "it needs more memory than is free",
}

CANNOT = Content.styled("✘ can't", "$text-warning")


def cannot_be_run(obstacle: str, name: str, n_params: int = 0) -> str:
    return f"this version cannot run it: {unsupported_message(obstacle, name, n_params)}"


def verdict_text(verdict: Verdict | None, about: bool = False) -> Content:
    """The verdict for a cell; `about` marks a guess, None is shown as nothing."""
    if verdict is None:
        return Content("")
    text, style = _LOOKS[verdict]
    return Content.styled(f"{text} ≈" if about else text, style)
