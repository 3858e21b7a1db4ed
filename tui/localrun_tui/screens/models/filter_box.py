"""The box above the lists of models."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from localrun_tui.widgets.model_path_field import ModelPathField, is_typed_path


class FilterBox(ModelPathField):
    """Words to filter a list by, or to search the hub for, or a path."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open the path", id="models.open-path", key_display="⏎"),
        Binding("enter", "submit", "To the list", id="models.to-list", key_display="⏎"),
        Binding("down", "app.focus_next", show=False, id="models.down-to-list"),
    ]

    async def action_open(self) -> None:
        await self.action_submit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("open", "submit"):
            return is_typed_path(self.value) is (action == "open")
        return super().check_action(action, parameters)
