"""Write docs/settings.md from the table that reads, checks and writes settings."""

from localrun.base.request import DEFAULT_SAMPLING
from localrun.base.setting_rows import SETTINGS, Setting
from localrun.base.settings import IN_ENVIRONMENT
from tools import ROOT

PAGE = ROOT / "docs" / "settings.md"
HEAD = r"""# Settings

`localrun config` shows every setting, `localrun config KEY VALUE` changes one, `localrun config KEY --unset` takes it
back. The app changes the same ones (F3). They are kept in `config.toml`:

| system | settings | chats and models | caches |
|---|---|---|---|
| Linux | `~/.config/localrun` | `~/.local/share/localrun` | `~/.cache/localrun` |
| macOS | `~/Library/Application Support/localrun` | the same | `~/Library/Caches/localrun` |
| Windows | `%LOCALAPPDATA%\localrun` | the same | `%LOCALAPPDATA%\localrun\Cache` |

`LOCALRUN_HOME=FOLDER` puts all of them into one folder. Options of a command go first, then environment variables, then
`config.toml`, then what the model's own files recommend.

This page is made by `python -m tools.write_settings_docs` from the settings themselves; change those.

## All settings

| key | meaning | value | default | variable |
|---|---|---|---|---|
"""
VARIABLES = """
## Other environment variables

| variable | meaning |
|---|---|
| `LOCALRUN_HOME` | one folder for settings, chats, models and caches |
| `LOCALRUN_OFFLINE=1` | open no connection, as `--offline` (`HF_HUB_OFFLINE=1` does the same) |
| `LOCALRUN_PLAIN=1` | `localrun` alone begins a chat line by line instead of the app |
| `LOCALRUN_FULL_REDRAW=1` | the app writes whole rows, for terminals where rows mix or colours stay behind |
| `LOCALRUN_SERVER_KEY` | the key of the server that `--server` names |
| `HF_HOME`, `HF_TOKEN`, `HF_ENDPOINT` | as in other programs that use the hub: its cache, your token, its address |
| `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` | proxies ([downloads](downloads.md)) |
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(row(key, setting) for key, setting in SETTINGS.items()) + VARIABLES


def row(key: str, setting: Setting) -> str:
    default = f"{setting.unset}, else {DEFAULT_SAMPLING[key]:g}" if key in DEFAULT_SAMPLING else setting.unset
    variable = f"`LOCALRUN_{key.upper()}`" if key in IN_ENVIRONMENT else ""
    value = "auto, or a whole number" if key == "ctx" else setting.range or "text"
    return f"| `{key}` | {setting.help} | {value} | {default} | {variable} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
