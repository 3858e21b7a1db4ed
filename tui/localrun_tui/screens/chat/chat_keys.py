"""The keys of the chat's screen; those that are shown in its last line come first."""

from textual.binding import Binding, BindingType

_PRECISIONS = "This model in another precision, context or codec"
CHAT_KEYS: list[BindingType] = [
    Binding("escape", "stop", "Stop", id="chat.stop"),
    Binding("escape", "back", "Back", id="chat.back"),
    Binding("f6", "consent", "Allow a tool", id="chat.consent", priority=True),
    Binding("ctrl+o", "app.models", "Models", id="chat.models"),
    Binding("ctrl+l", "history", "Chats", id="chat.history"),
    Binding("ctrl+g", "inspector", "Inspector", id="chat.inspector"),
    Binding("ctrl+n", "new_chat", "New chat", show=False, id="chat.new"),
    Binding("ctrl+t", "attach", "Attach a file: text, PDF or image", show=False, id="chat.attach"),
    Binding("ctrl+r", "regenerate", "Answer again", show=False, id="chat.regenerate"),
    Binding("ctrl+s", "chat_settings", "This chat: system prompt, sampling", show=False, id="chat.settings"),
    Binding("f8", "app.downloads", "Downloads", show=False, id="chat.downloads"),
    Binding("ctrl+f", "find", "Find in this chat", show=False, id="chat.find", priority=True),
    Binding("f3", "app.settings", "Settings", show=False, id="chat.all-settings"),
    Binding("f7", "app.precisions", _PRECISIONS, show=False, id="chat.precisions", priority=True),
    Binding("f5", "app.explain", "Explain: speed and memory", show=False, id="chat.explain"),
    Binding("f2", "this_chat('rename')", "Rename this chat", show=False, id="chat.rename"),
    Binding("pageup", "scroll(-1)", "Scroll up", show=False, id="chat.page-up", priority=True),
    Binding("pagedown", "scroll(1)", "Scroll down", show=False, id="chat.page-down", priority=True),
]
