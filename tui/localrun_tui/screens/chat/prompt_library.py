"""Choosing a prompt from the library: a system prompt for the chat, or a template that is filled in and edited."""

from typing import TYPE_CHECKING, Any

from textual.app import App

from localrun.chat.prompts import Prompt, find_prompt, prompt_folder, read_prompts
from localrun_tui.screens.dialogs.ask import AskOne, AskText

if TYPE_CHECKING:
    from localrun_tui.screens.chat.composer import Composer
    from localrun_tui.state.session import Session

_KINDS = {"system": "system prompt", "template": "template"}
_NO_SYSTEM = "/no system prompt"  # no prompt is called so


async def use_prompt(app: App[Any], session: "Session", composer: "Composer", name: str) -> None:
    """Take the prompt of that name, or let the user choose one. What is empty when asked for stays as it is written
    in the template, to be filled in by hand."""
    prompt = await (session.disk.run(find_prompt, name) if name else _choose(app, session))
    if prompt is None:
        return
    values = {}
    for variable, usual in prompt.variables.items():
        about = f"{usual} is taken where nothing is typed" if usual else "without a word it is left for the editor"
        value = await app.push_screen_wait(AskText(f"{prompt.title}: {variable}", usual, about))
        if value is None and not usual:
            value = f"{{{{{variable}}}}}"
        values[variable] = value or usual
    text = prompt.filled(values)
    if prompt.kind == "system":
        await _set_system(app, session, text, prompt.title)
    else:
        composer.write(text)


async def _choose(app: App[Any], session: "Session") -> Prompt | None:
    prompts = await session.disk.run(read_prompts)
    rows = [(one.name, one.title, f"{_KINDS[one.kind]}, {one.about or 'your own'}") for one in prompts]
    if session.chat is not None and session.chat.system:
        rows.insert(0, (_NO_SYSTEM, "No system prompt", "takes away the one that this chat has"))
    chosen = await app.push_screen_wait(AskOne("Prompts", rows, f"Your own are Markdown files in {prompt_folder()}"))
    if chosen == _NO_SYSTEM:
        await _set_system(app, session, "", "")
    return next((one for one in prompts if one.name == chosen), None)


async def _set_system(app: App[Any], session: "Session", text: str, title: str) -> None:
    chat = session.chat or await session.new_chat()
    await session.disk.run(lambda: chat.set(system=text))
    app.notify(f"System prompt: {title}" if title else "System prompt taken away", timeout=3, markup=False)
