"""Which keys the help screen shows, in the order a newcomer needs them."""

from textual.binding import Binding, BindingType

EVERYWHERE: list[BindingType] = [  # the app's own
    Binding("ctrl+c", "interrupt", "Stop, or quit when pressed twice", show=False, id="app.interrupt"),
    Binding("f1", "help", "Help", id="app.help"),
    Binding("ctrl+q", "quit", "Quit", id="app.quit"),
]


def groups() -> list[tuple[str, list[BindingType]]]:
    """Titles with the bindings below them."""
    from localrun_tui.screens.chat.chat_screen import ChatScreen
    from localrun_tui.screens.chat.editor import Editor
    from localrun_tui.screens.chat.history_list import ChatOptions, SearchBox
    from localrun_tui.screens.chat.message_view import MessageView
    from localrun_tui.screens.chat.waiting_list import WaitingList

    return [
        ("Writing", list(Editor.BINDINGS)),
        ("The chat", list(ChatScreen.BINDINGS)),
        ("A message (Ctrl+↑ in the editor goes there)", list(MessageView.BINDINGS)),
        ("A message that waits for the answer", list(WaitingList.BINDINGS)),
        ("The list of chats", [*ChatOptions.BINDINGS, *SearchBox.BINDINGS]),
        ("Everywhere", EVERYWHERE),
    ]
