"""The prompt library in plain chat."""

from localrun.base.errors import UsageError
from localrun.chat.prompts import find_prompt, keep_prompt, prompt_folder, read_prompts
from localrun.cli.console import note, table
from localrun.cli.line.chat import LineChat
from localrun.cli.line.input import ask_line


def use_prompt(chat: LineChat, name: str) -> None:
    """Show the library, or use a prompt: a system prompt holds from now on, a template is filled in and sent."""
    if not name:
        rows = [(one.name, one.kind, one.title, one.about) for one in read_prompts()]
        note("\n".join([*table(rows), "/prompt NAME uses one.", f"Your own are Markdown files in {prompt_folder()}"]))
        return
    prompt = find_prompt(name)
    text = prompt.filled({variable: _ask(chat, variable, usual) for variable, usual in prompt.variables.items()})
    if prompt.kind == "system":
        chat.chat.set(system=text)
        note(f"(system prompt: {prompt.title})")
    else:
        chat.send(text)


def keep_last(chat: LineChat, name: str) -> None:
    """Save the last message as a prompt."""
    path = keep_prompt(name, chat.chat.tree[chat.last_question()].text)
    note(f"(saved in {path}; /prompt {name} uses it)")


def _ask(chat: LineChat, variable: str, usual: str) -> str:
    """Ask for the value of a variable; in a script, take its default."""
    if not chat.talks:
        return usual
    try:
        return ask_line(f"{variable}{f' [{usual}]' if usual else ''}: ").strip() or usual
    except EOFError:
        raise UsageError(f"there is no value for {variable}", "/prompt asks again") from None
