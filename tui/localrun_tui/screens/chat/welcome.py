"""Welcome screen of an empty chat: first steps, and the model."""

from textual.content import Content
from textual.widgets import Static

from localrun.base.events import ModelInfo
from localrun.base.options import in_app
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.model_name import model_name

_KEYS = (
    ("Ctrl+O", "choose another model or precision"),
    ("Ctrl+T", "attach a file or a PDF"),
    ("Ctrl+L", "your chats: search, reopen, export"),
    ("Ctrl+G", "see the KV cache and where the time goes"),
    ("Ctrl+P", "every command by name"),
    ("F1", "all keys"),
)


class Welcome(Static):
    """Shown in place of messages."""

    def __init__(self, info: ModelInfo | None, loading: bool, problem: str) -> None:
        if info is not None:
            room = f": it sees up to {info.ctx:,} tokens at once" if info.ctx else ""  # a server may not say
            model = Content.assemble(model_name(info.name, info.precision), f" is ready{room}.")
        elif loading:
            model = Content("The model is being loaded. You may type already.")
        else:
            words = "No model is loaded yet: Ctrl+O chooses one; so does the first message."
            model = Content.styled(words, "$text-warning")
        lines = [Content.styled("Ask anything.", "bold $text-primary"), model, Content()]
        lines += [Content.assemble((f"{key:<8}", "bold $text-accent"), what) for key, what in _KEYS]
        notes = [*(info.notes if info else ()), *([problem] if problem else [])]
        lines += [Content(), *(say(in_app(note), "$text-warning") for note in notes)] if notes else []
        super().__init__(Content("\n").join(lines), id="welcome")
