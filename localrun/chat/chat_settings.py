"""Settings of one chat: its model, and how the model answers. They override config.toml."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, get_args

from localrun.base.adapter_choice import read_adapter
from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.nearest import did_you_mean
from localrun.base.request import KVCodecName, Think
from localrun.base.setting_rows import SETTINGS
from localrun.base.settings import Settings
from localrun.chat.conversation import Chat, SettingValue
from localrun.chat.presets import PRESETS, sampling_of

NUMBERS = ("temperature", "top_p", "max_tokens", "seed")  # settings that a chat may have of its own


@dataclass(frozen=True, slots=True)
class HeldWith:
    """The model of a chat as it was chosen.

    `ctx` in tokens: 0 as much as memory holds, None as in config.toml. `server` is the name of the server that runs the
    model; empty for a model on disk.
    """

    model: str = ""
    precision: str = ""
    ctx: int | None = None
    kv: str = "auto"
    window: int | None = None
    server: str = ""
    adapters: tuple[str, ...] = ()  # FILE:SCALE each


def numbers_of(chat: Chat) -> dict[str, Any]:
    """The chat's own numbers; values out of range, which another program may have written, are ignored."""
    return {key: value for key in NUMBERS if (value := _checked(key, chat.own.get(key))) is not None}


def settings_of(chat: Chat, settings: Settings) -> Settings:
    """`settings`, overridden by the chat's preset, then by its numbers."""
    sampling = sampling_of(settings, chat.preset)
    names = [field.name for field in fields(sampling) if field.name != "logit_bias"]
    return replace(settings, **{name: getattr(sampling, name) for name in names} | numbers_of(chat))


def own_change(text: str) -> tuple[str, SettingValue]:
    """Parse `temperature 0.3` to a change for `Chat.set`; `none` resets a setting. Raises UsageError."""
    name, _, value = text.strip().partition(" ")
    name, value = name.replace("-", "_"), value.strip()
    choices: dict[str, tuple[str, ...]] = {"preset": tuple(filter(None, PRESETS)), "think": get_args(Think)}
    if name not in (*NUMBERS, *choices):
        names = (*NUMBERS, *choices)
        raise UsageError(f"a chat has no {name} of its own", did_you_mean(name, names) or f"one of {', '.join(names)}")
    if value in ("", "none"):
        return name, None
    if name in choices:
        if value not in choices[name]:
            raise UsageError(f"there is no {name} {value}", f"one of {', '.join(choices[name])}")
        return name, value
    setting = SETTINGS[name]
    try:
        return name, setting.parse(value)
    except ValueError as error:
        raise UsageError(f"{name} cannot be {value}: {error}", f"{setting.help}; {setting.range}") from None


def think_of(chat: Chat) -> Think:
    """Whether the model thinks before it answers: on, off or auto."""
    value = chat.own.get("think")
    return next((name for name in get_args(Think) if name == value), "auto")


def held_with(chat: Chat) -> HeldWith:
    """The model that answered last in the chat; an empty one where none did."""
    own = chat.own
    return HeldWith(
        chat.model,
        _text(own, "precision"),
        _checked("ctx", own.get("ctx")),
        next((name for name in get_args(KVCodecName) if name == own.get("kv")), "auto"),
        _checked("window", own.get("window")),
        _text(own, "server"),
        _adapters(own.get("adapters")),
    )


def hold_with(chat: Chat, choice: HeldWith) -> None:
    """Store the model of the chat, where it has changed."""
    if choice != held_with(chat):
        values = {field.name: getattr(choice, field.name) for field in fields(choice)}
        ctx, adapters = "auto" if choice.ctx == 0 else choice.ctx, list(choice.adapters) or None
        chat.set(**{**values, "ctx": ctx, "adapters": adapters})


def _checked(key: str, value: object) -> Any:
    try:
        return None if value is None else SETTINGS[key].parse(value)
    except ValueError:
        return None


def _adapters(value: object) -> tuple[str, ...]:
    """The adapters that can be read; another program may have written anything."""
    found = []
    for text in value if isinstance(value, list) else ():
        with suppress(ValueError):
            found.append(str(read_adapter(text)))
    return tuple(found)


def _text(own: Mapping[str, Any], key: str) -> str:
    value = own.get(key)
    return value if isinstance(value, str) else ""
