"""Write docs/keys.md from the bindings of the app and the table of its commands."""

from collections.abc import Iterable

from localrun.chat.commands import COMMANDS
from localrun_tui.keys import groups
from localrun_tui.screens.help_screen import rows_of
from tools import ROOT

PAGE = ROOT / "docs" / "keys.md"
HEAD = """# Keys and commands

F1 shows all of this in the app, and Ctrl+P finds every command by its name. The last line of each
screen names its own keys.

This page is made by `python -m tools.write_keys_docs` from the bindings and commands themselves; change those.
"""
COMMANDS_HEAD = """
## Commands, typed as a message

They are the same in the app and in `localrun chat`, unless one is named. `//` begins a message with a slash.

"""
WHERE: dict[tuple[str, ...], str] = {("app",): " (app only)", ("plain",): " (`localrun chat` only)"}


def page() -> str:
    """The whole page."""
    keys = (f"\n## {title}\n\n{table('key', rows_of(bindings))}" for title, bindings in groups())
    rows = [(one.usage, f"{one.title}: {one.help}{WHERE.get(one.faces, '')}") for one in COMMANDS]
    return "".join([HEAD, *keys, COMMANDS_HEAD, table("command", rows)])


def table(head: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"| {head} | |", "|---|---|", *(f"| `{_cell(name)}` | {_cell(does)} |" for name, does in rows)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
