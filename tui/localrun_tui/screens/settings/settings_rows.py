"""Rows of the settings screen: every setting with its value and what set it, and the servers. No widgets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localrun.base.settings import SETTINGS, Setting, read_sources
from localrun.client.endpoint import Endpoint
from localrun.client.endpoints import read_endpoints
from localrun_tui.screens.settings.settings_groups import in_groups

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
    def overridden(self) -> bool:
        """Whether what is written to config.toml has no effect now."""
        return self.source not in (DEFAULT, "config.toml")


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A server; None is the line that adds one."""

    endpoint: Endpoint | None


def setting_rows(flags: Mapping[str, Any]) -> list[SettingRow]:
    """Every setting; `flags` came with the command line. UsageError for what cannot be read."""
    in_file = read_sources({})
    found = {**read_sources(), **{key: (value, FLAG) for key, value in flags.items() if value is not None}}
    rows = []
    for group, key, title in in_groups():
        setting, (value, source) = SETTINGS[key], found.get(key, (None, DEFAULT))
        shown = setting.unset if source == DEFAULT else _shown(key, value)
        rows.append(SettingRow(group, key, title, setting, shown, source, key in in_file))
    return rows


def server_rows() -> list[ServerRow]:
    """Every server, and the line to add one. UsageError for what cannot be read."""
    return [*(ServerRow(endpoint) for endpoint in read_endpoints()), ServerRow(None)]


def edited(row: SettingRow) -> str:
    """The text that the box begins with when a setting is changed."""
    return "" if row.source == DEFAULT else row.value


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
    return "auto" if key == "ctx" and value == 0 else str(value)
