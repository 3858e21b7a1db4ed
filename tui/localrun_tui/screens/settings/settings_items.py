"""Rows of settings and servers for their list, and the text about the highlighted one."""

from textual.content import Content

from localrun.client.remote.endpoints import masked
from localrun_tui.screens.settings.settings_rows import DEFAULT, ServerRow, SettingRow
from localrun_tui.widgets.columns import Column, Row, say
from localrun_tui.widgets.model_list import Item

COLUMNS = (Column("", 8), Column("SETTING", 18), Column("VALUE"), Column("SET BY", 17, from_width=70))
SettingsItem = Item[SettingRow | ServerRow]


def setting_item(row: SettingRow | ServerRow) -> SettingsItem:
    muted = "$foreground-muted"
    if isinstance(row, SettingRow):
        is_default = row.source == DEFAULT
        cells = (
            say(row.group, muted),
            say(row.title),
            say(row.value, muted if is_default else "bold"),
            say(row.source, muted),
        )
        return Item(row.key, Row(COLUMNS, cells), row, f"{row.key} {row.setting.help}")
    if row.endpoint is None:
        cells = (say("Servers", muted), Content(""), say("+ add a server", "$text-accent"), Content(""))
        return Item("+", Row(COLUMNS, cells), row)
    cells = (say("Servers", muted), say(row.endpoint.name), say(row.endpoint.url, "bold"), say("endpoints.toml", muted))
    return Item(f"server {row.endpoint.name}", Row(COLUMNS, cells), row)


def setting_detail(row: SettingRow | ServerRow) -> Content:
    if isinstance(row, SettingRow):
        takes = f"takes {row.setting.range}; " if row.setting.range else ""
        second = say(f"{takes}default: {row.setting.unset}", "$foreground-muted")
        if row.overridden:
            second = say(f"{row.source} goes before config.toml: a change here waits until it is gone", "$text-warning")
        return Content("\n").join([say(f"{row.key}: {row.setting.help}"), second])
    if row.endpoint is None:
        return say("A server on another machine that speaks the OpenAI protocol: vLLM, TGI, llama.cpp …")
    return say(f"key: {masked(row.endpoint.key)}; what you write to its models is sent there")
