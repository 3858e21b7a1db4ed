"""localrun's two themes; Textual's own are there too."""

import os
from collections.abc import Mapping
from typing import Any

from textual.app import App
from textual.theme import Theme

from localrun.base.errors import LocalrunError
from localrun.base.settings import read_settings

DARK = Theme(
    name="localrun-dark",
    primary="#6cb6ff",
    secondary="#c4a7f5",
    accent="#f2b36d",
    success="#7bd0a0",
    warning="#e6c36a",
    error="#f0787a",
    foreground="#dde2ea",
    background="#101318",
    surface="#171b22",
    panel="#1e242d",
    dark=True,
    variables={
        "foreground-muted": "#dde2eabf",  # as all below, readable on the highlighted row, too
        "text-disabled": "auto 72%",  # placeholders
        "footer-key-foreground": "#f2b36d",
        "block-cursor-text-style": "none",
        "scrollbar": "#2c3644",
        "scrollbar-hover": "#3a475a",
        "scrollbar-active": "#6cb6ff",
        "scrollbar-background": "#101318",
        "scrollbar-background-hover": "#101318",
        "scrollbar-background-active": "#101318",
    },
)
LIGHT = Theme(
    name="localrun-light",
    primary="#1c62a8",
    secondary="#6b45b0",
    accent="#9a4a08",
    success="#1f6f45",
    warning="#8a5a00",
    error="#b3261e",
    foreground="#1f2328",
    background="#fcfbf8",
    surface="#f4f2ed",
    panel="#e9e6df",
    dark=False,
    variables={
        "foreground-muted": "#1f2328cc",
        "text-disabled": "auto 72%",
        "footer-key-foreground": "#9a4a08",
        "block-cursor-text-style": "none",
        "scrollbar": "#d2cdc2",
        "scrollbar-hover": "#bdb7aa",
        "scrollbar-active": "#1c62a8",
        "scrollbar-background": "#fcfbf8",
        "scrollbar-background-hover": "#fcfbf8",
        "scrollbar-background-active": "#fcfbf8",
    },
)


def put_theme_on(app: App[Any], name: str | None) -> None:
    """Register both, and take the theme of that name; the default one where there is none. `light` and `dark` are
    ours."""
    app.register_theme(DARK)
    app.register_theme(LIGHT)
    named = (name, f"localrun-{name}")
    app.theme = next((one for one in named if one and one in app.available_themes), default_theme())


def kept_theme() -> str | None:
    """The theme of config.toml; who reads other settings reports a broken file."""
    try:
        return read_settings().theme
    except LocalrunError:
        return None


def default_theme(environ: Mapping[str, str] = os.environ) -> str:
    """The light one where the terminal tells that its background is light."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in ("7", "15") else DARK.name
