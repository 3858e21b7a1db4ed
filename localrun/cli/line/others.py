"""Words in plain chat about what another localrun wrote in it."""

from localrun.chat.other_writers import Others, read_others
from localrun.cli.console import note
from localrun.cli.line.chat import LineChat
from localrun.cli.line.shown import show_messages

_WORDS = {
    Others.DELETED: Others.DELETED.value,
    Others.ASK: "Another localrun asks in this chat: question and answer will be a branch, see /branch",
    Others.WROTE_ELSEWHERE: f"{Others.WROTE_ELSEWHERE.value}: /branch goes there",
    Others.WROTE_BELOW: "Another localrun wrote in this chat meanwhile, and this goes below it:",
}


def tell_others(chat: LineChat) -> None:
    """Tell what others wrote before the line that was typed counts, since the answer will be to all of it."""
    if not chat.chat.has_grown:
        return
    tree, known = chat.chat.tree, len(chat.chat.tree.path(chat.chat.tree.head))
    if (what := read_others(chat.chat)) is None:
        return
    note(f"({_WORDS[what]})")
    if what is Others.WROTE_BELOW:
        chat.unanswered = None  # /retry means the last message that is shown
        show_messages(tree.path(tree.head)[known:], None)
