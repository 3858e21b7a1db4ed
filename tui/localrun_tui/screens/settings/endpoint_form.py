"""A server to add or to change: name, address, key and model, each checked while it is typed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static

from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import check_endpoint, travels_in_the_clear
from localrun.client.remote.key_store import has_keyring
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fields import LineField
from localrun_tui.widgets.key_hint import KeyHint
from localrun_tui.widgets.leaving import Dialog

_FIELDS = (
    ("name", "Name", "what you call it, such as lab"),
    ("url", "Address", "https://host:8000/v1"),
    ("key", "Key", "none, if the server wants none"),
    ("model", "Model", "any it lists; a name, if it lists none"),
)


class EndpointForm(Dialog[Endpoint | None]):
    """Dismisses with the server, or None. `taken` are the names of the others."""

    CSS_PATH = "endpoint_form.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="endpoint.cancel"),
        Binding("up", "app.focus_previous", show=False, id="endpoint.up"),
        Binding("down", "app.focus_next", show=False, id="endpoint.down"),
    ]

    def __init__(self, endpoint: Endpoint | None, taken: Sequence[str]) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.taken = taken

    def compose(self) -> ComposeResult:
        known = self.endpoint
        values = {field: getattr(known, field) for field, _, _ in _FIELDS} if known else {}
        with Vertical(id="box"):
            yield Static("A server that speaks the OpenAI protocol", id="question")
            for key, title, hint in _FIELDS:
                with Horizontal(classes="field"):
                    yield Static(title, classes="name")
                    value = values.get(key, "")
                    yield LineField(value, id=key, placeholder=hint, password=key == "key", compact=True)
            yield Static("", id="problem")
        yield KeyHint("Enter goes on, and keeps it from the last line; Escape leaves it as it was")

    def on_mount(self) -> None:
        self.query_one("#name", Input).focus()
        self._check()

    @on(Input.Changed)
    def _check(self) -> Endpoint | None:
        """The server as typed; None, and why, while it is none."""
        name, url, key, model = (self.query_one(f"#{field}", Input).value for field, _, _ in _FIELDS)
        warning, found = "", None
        try:
            found = check_endpoint(name, url, key, self.taken, model)
            found = self._kept(found)
        except ValueError as error:
            warning = str(error) if name and url else ""
        if found is not None and travels_in_the_clear(found):
            warning = "http: others on the network can read what you send, the key included"
        self.query_one("#problem", Static).update(say(warning))
        return found

    def _kept(self, found: Endpoint) -> Endpoint:
        """The server with the place of its key: that of before, for another key the system's keyring if it has one."""
        known = self.endpoint
        if known is not None:
            found = replace(found, tokenizer=known.tokenizer)
        if known is not None and found.key == known.key:
            return replace(found, key_env=known.key_env, in_keyring=known.in_keyring)
        return replace(found, in_keyring=bool(found.key) and has_keyring())

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        """Go to the next line; from the last one, save."""
        found = self._check()
        if event.input.id == _FIELDS[-1][0] and found is not None:
            self.dismiss(found)
        else:
            self.focus_next()
