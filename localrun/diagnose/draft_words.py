"""Drafts of an answer in words, for every face. Torch-free."""

from collections.abc import Mapping
from typing import Any


def draft_words(stats: Mapping[str, Any]) -> str:
    """How many guessed tokens were right and what they gained, from the figures of a Completion, or why none were
    guessed; empty where none were looked for."""
    drafted, accepted = int(stats.get("drafted_tokens") or 0), int(stats.get("accepted_tokens") or 0)
    if not drafted:
        searched = "none were worth their time" if stats.get("draft_searches") else ""
        why = str(stats.get("drafts_off") or searched)
        return f"no tokens guessed: {why}" if why else ""
    n_after_first = int(stats.get("completion_tokens") or 0) - 1
    a_step = n_after_first / max(1, n_after_first - accepted)
    words = f"{accepted:,} of {drafted:,} guessed tokens right, {a_step:.2f} tokens a step"
    gain = stats.get("draft_gain")
    return words if gain is None else f"{words}, ≈{gain:.2f} times as fast as without (estimated from its steps)"
