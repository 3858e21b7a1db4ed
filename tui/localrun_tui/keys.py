"""Keys of the help screen, in the order in which a newcomer needs them."""

from textual.binding import Binding, BindingType

_SUSPEND = "Suspend, where nothing can be undone: fg brings it back"
EVERYWHERE: list[BindingType] = [  # the app's own
    Binding("ctrl+c", "interrupt", "Copy what is selected; else stop, twice: quit", show=False, id="app.interrupt"),
    Binding("f1", "help", "Help", id="app.help"),
    Binding("question_mark", "help", "Help, where nothing is typed", show=False, id="app.help-too"),
    Binding("ctrl+z", "suspend_process", _SUSPEND, show=False, id="app.suspend"),
    Binding("ctrl+q", "quit", "Quit", id="app.quit"),
]


_MODELS = ("chat.models", "chat.precisions", "chat.downloads", "chat.all-settings", "chat.inspector", "chat.explain")
_CHATS = ("chat.new", "chat.history", "chat.settings", "chat.rename", "chat.find")


def groups() -> list[tuple[str, list[BindingType]]]:
    """Bindings by task."""
    from localrun_tui.screens.chat.chat_screen import ChatScreen
    from localrun_tui.screens.chat.consent_card import ConsentCard
    from localrun_tui.screens.chat.editor import Editor
    from localrun_tui.screens.chat.find_bar import FindBar
    from localrun_tui.screens.chat.history_list import ChatOptions, SearchBox
    from localrun_tui.screens.chat.inspector import Inspector
    from localrun_tui.screens.chat.message_view import MessageView
    from localrun_tui.screens.chat.waiting_list import WaitingList

    chat = [binding for binding in ChatScreen.BINDINGS if isinstance(binding, Binding)]
    rest = [binding for binding in chat if binding.id not in (*_MODELS, *_CHATS)]
    return [
        ("Write", list(Editor.BINDINGS)),
        ("Answers, and where one is", list(rest)),
        ("A message (Ctrl+↑ in the editor goes there)", list(MessageView.BINDINGS)),
        ("A message that waits for the answer", list(WaitingList.BINDINGS)),
        ("A tool that waits for consent (F6 goes there)", list(ConsentCard.BINDINGS)),
        ("Chats", [binding for binding in chat if binding.id in _CHATS]),
        ("In the list of chats", [*ChatOptions.BINDINGS, *SearchBox.BINDINGS]),
        ("Finding in a chat", list(FindBar.BINDINGS)),
        ("Models and settings", [binding for binding in chat if binding.id in _MODELS]),
        ("In the inspector", list(Inspector.BINDINGS)),
        ("Everywhere", EVERYWHERE),
    ]


def key_for(action: str) -> str:
    """The key of an action of the chat's screen or of the app, as people write it; empty where there is none."""
    from localrun_tui.screens.chat.chat_screen import ChatScreen
    from localrun_tui.screens.help_screen import key_names

    bindings = [binding for binding in (*ChatScreen.BINDINGS, *EVERYWHERE) if isinstance(binding, Binding)]
    return next((key_names(binding) for binding in bindings if binding.action in (action, f"app.{action}")), "")
