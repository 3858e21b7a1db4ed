"""The prompt library: files with a head and variables, the user's own before those that ship."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localrun.base.errors import NotFoundError, UsageError
from localrun.chat.prompts import find_prompt, keep_prompt, parse, read_prompts

SOURCE = "---\ntitle: Explain\nabout: in words\nkind: system\n---\nSay {{what}} to {{ who | a child }}, {{what}}!\n"


def test_a_file_with_a_head() -> None:
    prompt = parse("explain", SOURCE)
    assert (prompt.title, prompt.about, prompt.kind) == ("Explain", "in words", "system")
    assert prompt.variables == {"what": "", "who": "a child"}
    assert prompt.filled({"what": "it"}) == "Say it to a child, it!"
    assert prompt.filled({"what": "{{who}}", "who": "me"}) == "Say {{who}} to me, {{who}}!"
    with pytest.raises(UsageError, match="needs what"):
        prompt.filled({})


@pytest.mark.parametrize("source", ["just text", "---\nno end", "", "--- \nkind: nonsense\n---\ntext"])
def test_a_file_without_a_head_is_a_template(source: str) -> None:
    prompt = parse("name", source)
    assert (prompt.kind, prompt.title) == ("template", "name")
    assert prompt.text == ("text" if "nonsense" in source else source.strip())


@given(st.text())
def test_any_text_may_stand_in_a_file(text: str) -> None:
    prompt = parse("name", text)
    assert "\x1b" not in prompt.text
    assert prompt.filled(dict.fromkeys(prompt.variables, "x")) is not None


def test_shipped_prompts_are_valid() -> None:
    shipped = [prompt for prompt in read_prompts() if prompt.shipped]
    assert {prompt.kind for prompt in shipped} == {"system", "template"}
    for prompt in shipped:
        assert prompt.about
        assert prompt.title != prompt.name
        assert "{{" not in prompt.filled(dict.fromkeys(prompt.variables, "x"))


def test_the_users_own_come_first_and_broken_files_are_passed_over(home: Path) -> None:
    folder = home / "prompts"
    folder.mkdir(parents=True)
    (folder / "translate.md").write_text("Into Latin: {{text}}")
    (folder / "bad.md").write_bytes(b"\xff\xfe")
    (folder / "bad name!.md").write_text("x")
    (folder / "huge.md").write_text("x" * 300_000)
    names = [prompt.name for prompt in read_prompts()]
    assert names.count("translate") == 1
    assert not {"bad", "bad name!", "huge"} & set(names)
    assert find_prompt("translate").text == "Into Latin: {{text}}"
    with pytest.raises(NotFoundError) as caught:
        find_prompt("translat")
    assert "translate" in (caught.value.hint or "")


def test_a_message_is_kept_as_a_prompt(home: Path) -> None:
    path = keep_prompt("mine", "Say {{what}}: ---\n---")
    assert find_prompt("mine").filled({"what": "it"}) == "Say it: ---\n---"
    assert path.parent == home / "prompts"
    for name in ("mine", "../x", "", "a b"):
        with pytest.raises(UsageError):
            keep_prompt(name, "x")
