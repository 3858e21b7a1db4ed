"""Keys of the screen of models, and the lists in which each does something."""

from textual.binding import Binding, BindingType

MODELS_KEYS: list[BindingType] = [
    Binding("escape", "back", "Back", id="models.back"),
    Binding("slash", "filter", "Filter", id="models.filter", key_display="/"),
    Binding("slash", "search", "Search", id="models.search", key_display="/"),
    Binding("left", "section(-1)", "Section", id="models.previous", key_display="←→"),
    Binding("right", "section(1)", "Next section", id="models.next", show=False),
    Binding("d", "downloads", "Downloads", id="models.downloads"),
    Binding("m", "make_default", "Default", id="models.default"),
    Binding("o", "reveal", "Where it is", id="models.reveal"),
    Binding("s", "storage", "Storage", id="models.storage"),
    Binding("u", "update", "Newer?", id="models.update"),
    Binding("a", "add_server", "Add server", id="models.add-server"),
    Binding("e", "change_server", "Change", id="models.change-server"),
    Binding("delete,backspace", "remove", "Delete", id="models.remove", key_display="del"),
    Binding("r", "reload", "Refresh", id="models.reload"),
    Binding("f", "open_path", "Open a file or folder", id="models.open"),
]

# The lists that an action belongs to; any other is in all of them.
_PLACES = {
    "search": ("hub",),
    "filter": ("disk", "catalogue", "remote"),
    "add_server": ("remote",),
    "change_server": ("remote",),
    "remove": ("disk", "remote"),
    **dict.fromkeys(("make_default", "reveal", "update", "open_path"), ("disk",)),
}
OF_A_ROW = ("change_server", "remove", "make_default", "reveal", "update")


def is_in_list(action: str, name: str) -> bool:
    """Whether an action can be done in the list of this name."""
    return name in _PLACES.get(action, (name,))
