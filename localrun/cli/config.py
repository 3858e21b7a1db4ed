"""`localrun config`: show settings, and change them."""

from typing import Annotated, Any

import typer

from localrun.base.errors import UsageError
from localrun.base.setting_rows import SETTINGS
from localrun.base.settings import check_key, config_file, read_settings, write_setting
from localrun.cli.completion import complete_setting, complete_value
from localrun.cli.console import note, write, write_json, write_table
from localrun.cli.groups import JsonSwitch, switch
from localrun.cli.text_input import typed_text
from localrun.storage.erase import erase_unwanted


def config(
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]",
            help="a setting; without one, all are shown",
            show_default=False,
            autocompletion=complete_setting,
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Argument(metavar="[VALUE]", help="the new value", show_default=False, autocompletion=complete_value),
    ] = None,
    unset: Annotated[bool, switch("--unset", "remove KEY from the file")] = False,
    json: JsonSwitch = False,
) -> int:
    """Show or change settings. Flags override LOCALRUN_* variables, and those override the file."""
    if unset and (key is None or value is not None):
        raise UsageError("--unset takes a KEY and nothing else", "localrun config --unset KEY")
    if key is not None:
        check_key(key)
    if key is not None and (unset or value is not None):
        if key == "model" and value is not None:
            from localrun.hub.default_model import check_default  # no other key waits for it

            if hint := check_default(typed_text(value)):
                note(hint)
        path = write_setting(key, value)
        note(f"{key} {'removed from' if unset else 'set in'} {path}")
        if removed := erase_unwanted(key):
            note(f"removed {removed}")
    elif json:
        write_json(_values() if key is None else {key: _values()[key]})
    elif key is not None:
        shown = _values()[key]
        write("" if shown is None else f"{shown}\n")
    else:
        note(f"file: {config_file() or 'none, there is no home folder'}")
        write_table([(name, _shown(value), SETTINGS[name].help) for name, value in _values().items()])
    return 0


def _values() -> dict[str, Any]:
    settings = read_settings()
    values = {key: getattr(settings, key) for key in SETTINGS}
    return {**values, "ctx": "auto" if settings.ctx == 0 else settings.ctx}


def _shown(value: object) -> str:
    return "-" if value is None else str(value)
