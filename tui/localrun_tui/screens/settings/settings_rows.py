"""Rows of the settings screen: every setting with its value and what set it, and the servers. No widgets."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.events import ModelInfo
from localrun.base.request import DEFAULT_SAMPLING
from localrun.base.setting_rows import SETTINGS, Setting
from localrun.base.settings import read_sources, write_setting
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import read_endpoints
from localrun_tui.screens.settings.settings_groups import UNITS, in_groups

DEFAULT = "default"
FLAG = "command line"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting. `source` is what set it: the command line, a variable, config.toml, or nothing (DEFAULT)."""

    group: str
    key: str
    title: str
    setting: Setting
    value: str
    source: str
    in_file: bool

    @property
    def choice(self) -> str:
        """The one of its choices that counts, set or not; empty where none does."""
        return next((one for one in self.setting.choices if re.match(rf"{one}\b", self.value)), "")

    @property
    def overridden(self) -> bool:
        """Whether what is written to config.toml has no effect now."""
        return self.source not in (DEFAULT, "config.toml")


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A server; None is the line that adds one."""

    endpoint: Endpoint | None


def setting_rows(flags: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> list[SettingRow]:
    """Every setting; `flags` came with the command line, `own` are those of the loaded model. UsageError for what
    cannot be read."""
    in_file = read_sources({})
    found = {**read_sources(), **{key: (value, FLAG) for key, value in flags.items() if value is not None}}
    rows = []
    for group, key, title in in_groups():
        setting, (value, source) = SETTINGS[key], found.get(key, (None, DEFAULT))
        shown = _unset(key, own or {}) if source == DEFAULT else _shown(key, value)
        rows.append(SettingRow(group, key, title, setting, shown, source, key in in_file))
    return rows


def server_rows() -> list[ServerRow]:
    """Every server, and the line to add one. UsageError for what cannot be read."""
    return [*(ServerRow(endpoint) for endpoint in read_endpoints()), ServerRow(None)]


def edited(row: SettingRow) -> str:
    """The text that the box begins with when a setting is changed."""
    return "" if row.source == DEFAULT else row.value.removesuffix(f" {UNITS.get(row.key, '')}")


def problem(setting: Setting, text: str) -> str:
    """The problem of a value as typed; empty when there is none."""
    try:
        setting.parse(text)
    except ValueError as error:
        return str(error)
    return ""


def _shown(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if key == "ctx" and value == 0:
        return "auto"
    return f"{value} {UNITS[key]}" if key in UNITS else str(value)


def _unset(key: str, own: Mapping[str, Any]) -> str:
    """The value that counts where nothing is set, and whose it is."""
    unset = SETTINGS[key].unset
    if own.get(key) is not None:
        return f"{own[key]:g}, as the model says"
    if key in DEFAULT_SAMPLING:
        return f"{DEFAULT_SAMPLING[key]:g}" + ("" if key in own else ", or the model's own")
    return f"{unset} {UNITS[key]}" if key in UNITS and unset[:1].isdigit() else unset


def sampling_of_loaded(info: ModelInfo | None) -> dict[str, Any]:
    """Sampling that the loaded model brings along; empty where its file does not tell. Reads its header."""
    from localrun.formats.detect import open_model_file
    from localrun.text.own_sampling import own_sampling

    if info is None or not info.path:
        return {}
    try:
        return asdict(own_sampling(open_model_file(Path(info.path))))
    except LocalrunError:
        return {}


def write_checked(key: str, value: str | None) -> None:
    """Write a setting, of models only one that there is; one that keeps nothing on disk removes what another kept."""
    if key == "model" and value is not None:
        from localrun.hub.default_model import check_default

        check_default(value)
    write_setting(key, value)
    from localrun.storage.erase import erase_unwanted

    erase_unwanted(key)
