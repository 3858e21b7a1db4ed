"""Suggestions behind a command: the values that its argument may have."""

from collections.abc import Callable, Iterable

from textual.content import Content

from localrun_tui.screens.chat.suggestions import Suggestion
from localrun_tui.widgets.columns import say

ArgumentValues = Iterable[tuple[str, str]]  # each with words about it
_MOST = 40


def takes_argument(text: str) -> bool:
    """Whether the text is a command whose values are known, and a space."""
    command, space, _ = text.partition(" ")
    return bool(space) and "\n" not in text and command in _VALUES


def suggested_arguments(text: str) -> list[Suggestion]:
    """Rows for the values that contain what is typed behind the command, those that begin so first.

    Reads the disk: call it on a thread.
    """
    command, _, typed = text.partition(" ")
    wanted = typed.strip().lower()
    fitting = [(value, words) for value, words in _VALUES[command]() if wanted in value.lower()]
    fitting.sort(key=lambda one: not one[0].lower().startswith(wanted))
    return [
        Suggestion(
            command,
            Content.assemble(say(value, "bold"), ("  ", ""), say(words, "$foreground-muted")),
            argument=value,
        )
        for value, words in fitting[:_MOST]
    ]


def _models() -> ArgumentValues:
    from localrun.hub.aliases import without_aliases
    from localrun.hub.library import scan

    found = sorted(without_aliases(scan()), key=lambda one: -(one.last_used or 0.0))
    names = [one.name for one in found]
    for one in found:
        several = names.count(one.name) > 1 and one.precision
        yield (f"{one.name}:{one.precision}", "") if several else (one.name, one.precision)


def _prompts() -> ArgumentValues:
    from localrun.chat.prompts import read_prompts

    return [(one.name, one.title) for one in read_prompts()]


def _policies() -> ArgumentValues:
    from localrun.chat.overflow import POLICIES

    return [(name, f"{title}: {words}") for name, (title, words) in POLICIES.items()]


def _topics() -> ArgumentValues:
    from localrun.diagnose.explain.words import WORDS

    return [(name, words.title) for name, words in WORDS.items()]


_VALUES: dict[str, Callable[[], ArgumentValues]] = {
    "/retry-with": _models,
    "/prompt": _prompts,
    "/policy": _policies,
    "/explain": _topics,
}
