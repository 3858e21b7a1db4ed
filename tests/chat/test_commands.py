"""Commands behind a slash: what is one, and that every face knows those it promises."""

import pytest

from localrun.base.errors import UsageError
from localrun.chat.commands import COMMANDS, command_in, commands_of, temperature_in, unescaped
from localrun.cli.line.commands import HANDLERS


@pytest.mark.parametrize("text", ["hello", "/usr/bin/env is what?", "//retry", "a /retry", "/", "/Retry", "/2 is half"])
def test_a_path_and_an_escaped_slash_are_messages(text: str) -> None:
    assert command_in(text, "app") is None


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/retry", "/retry", ""),
        ("/bye", "/quit", ""),
        ("/exit", "/quit", ""),
        ("/clear", "/new", ""),
        ("/history", "/list", ""),
        ("/mcp", "/tools", ""),
        (" /title  My chat ", "/title", "My chat"),
        ("/save a b.md", "/save", "a b.md"),
    ],
)
def test_commands_are_parsed_with_their_arguments(text: str, name: str, rest: str) -> None:
    found = command_in(text, "plain")
    assert found is not None
    assert (found[0].name, found[1]) == (name, rest)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("/retyr", "there is no command /retyr", "did you mean /retry?"),
        ("/zzzz", "there is no command /zzzz", "// begins a message"),
        ("/search", "/search needs WORDS", "/search WORDS"),
        ("/models", "/models works in the app only", ""),
        ("/new day, new luck", "/new stands alone", "//new"),
    ],
)
def test_unknown_commands_hint_at_help(text: str, says: str, hint: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        command_in(text, "plain")
    assert hint in (caught.value.hint or "")


def test_two_slashes_are_one() -> None:
    assert [unescaped(text) for text in ("//retry", "/x", "y")] == ["/retry", "/x", "y"]


def test_plain_chat_does_what_the_list_promises() -> None:
    assert set(HANDLERS) == set(commands_of("plain"))
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)


def test_the_temperature_behind_retry() -> None:
    assert [temperature_in(text) for text in ("", "0", "1.5")] == [None, 0.0, 1.5]
    for text in ("hot", "9", "-1", "nan"):
        with pytest.raises(UsageError, match="not a temperature"):
            temperature_in(text)
