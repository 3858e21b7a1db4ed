"""Options that several commands share, each defined once."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import typer

from localrun.base.adapter_choice import AdapterChoice, read_adapter
from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.parsers import one_of
from localrun.base.request import DEFAULT_SAMPLING, Think
from localrun.base.setting_rows import SETTINGS
from localrun.cli.completion import complete_model, complete_precision, complete_word
from localrun.cli.text_input import typed_text


def checked(parse: Callable[[object], Any], metavar: str) -> Callable[[str], Any]:
    def check(value: str) -> Any:
        try:
            return parse(value)
        except ValueError as error:
            raise typer.BadParameter(f"{value!r}: {error}") from None

    check.__name__ = metavar
    return check


def _setting(key: str, metavar: str, panel: str) -> Any:
    """The option of a setting: same check and help as in config.toml, and the value that holds without it."""
    row = SETTINGS[key]
    metavar = row.placeholder or metavar
    usual = f"{row.unset}, else {DEFAULT_SAMPLING[key]:g}" if key in DEFAULT_SAMPLING else row.unset
    return typer.Option(
        f"--{key.replace('_', '-')}",
        parser=checked(row.parse, metavar),
        metavar=metavar,
        help=f"{row.help} (default: {usual})",
        rich_help_panel=panel,
        show_default=False,
        autocompletion=complete_word(*row.choices),
    )


def switch(name: str, help: str, panel: str | None = None) -> Any:
    """An option that is on or off."""
    return typer.Option(name, metavar="", help=help, rich_help_panel=panel)


JsonSwitch = Annotated[bool, switch("--json", "as JSON")]
NO_ATTACH = "load the model here, even if a running localrun could share its engine"
_THINK = get_args(Think)
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
ANSWER_PANEL, _MODEL, _MACHINE = "The answer", "The model", "The machine"


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options that choose the model."""

    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="a name, a path or org/repo",
            rich_help_panel=_MODEL,
            autocompletion=complete_model,
        ),
    ] = None
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            metavar="NAME",
            help="Q4_K_M …; for safetensors also int8, int4 or int2",
            rich_help_panel=_MODEL,
            autocompletion=complete_precision,
        ),
    ] = "auto"


ModelArgument = Annotated[
    str | None, typer.Argument(metavar="[MODEL]", show_default=False, autocompletion=complete_model)
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="NAME|URL",
        help="use a model of this server, by the OpenAI protocol; its key is in LOCALRUN_SERVER_KEY",
        rich_help_panel=_MODEL,
    ),
]
OfflineSwitch = Annotated[bool, switch("--offline", "do not use the network", _MODEL)]


@dataclass(frozen=True, slots=True)
class HubOptions:
    """Options for a model that is not on disk."""

    pull: Annotated[bool, switch("--pull", "download MODEL without asking", _MODEL)] = False
    offline: OfflineSwitch = False


NO_ADAPTER = "none"


def _adapter(value: object) -> AdapterChoice | str:
    return NO_ADAPTER if value == NO_ADAPTER else read_adapter(value)


LoraOption = Annotated[
    list[Any] | None,
    typer.Option(
        "--lora",
        parser=checked(_adapter, "FILE[:SCALE]"),
        metavar="FILE[:SCALE]",
        help="an adapter beside its weights: of PEFT, MLX or a GGUF; repeatable, none for none",
        rich_help_panel=_MODEL,
        show_default=False,
    ),
]


def adapters_named(lora: list[Any] | None) -> tuple[AdapterChoice, ...] | None:
    """The adapters that were typed; None where nothing was."""
    return None if lora is None else tuple(one for one in lora if one != NO_ADAPTER)


@dataclass(frozen=True, slots=True)
class CacheFlags:
    """How much of a text it holds, and in what form; None leaves a choice to LOCALRUN_*, config.toml or the default."""

    ctx: Annotated[int | None, _setting("ctx", "N|auto", _MACHINE)] = None
    kv: Annotated[str | None, _setting("kv", "CODEC", _MACHINE)] = None
    window: Annotated[int | None, _setting("window", "N", _MACHINE)] = None


DeviceOption = Annotated[int | None, _setting("device", "N", _MACHINE)]


@dataclass(frozen=True, slots=True)
class MachineFlags(CacheFlags):
    """Where it is computed, too; None leaves a choice to LOCALRUN_*, config.toml or the default."""

    backend: Annotated[str | None, _setting("backend", "NAME", _MACHINE)] = None
    device: DeviceOption = None
    threads: Annotated[int | None, _setting("threads", "N", _MACHINE)] = None


@dataclass(frozen=True, slots=True)
class LoadOptionFlags(MachineFlags):
    """How to hold it; None leaves a choice to LOCALRUN_*, config.toml or the default."""

    lora: LoraOption = None
    no_prefix_cache: Annotated[
        bool, switch("--no-prefix-cache", "compute every prompt from its first token", panel=_MACHINE)
    ] = False

    @property
    def adapters(self) -> tuple[AdapterChoice, ...] | None:
        """The adapters that were typed; None where none was."""
        return adapters_named(self.lora)


DraftOption = Annotated[str | None, _setting("draft", "HOW", _MACHINE)]


@dataclass(frozen=True, slots=True)
class AnsweringFlags(LoadOptionFlags):
    """How to hold it, and how it answers."""

    draft: DraftOption = None


@dataclass(frozen=True, slots=True)
class EngineFlags(AnsweringFlags):
    """How to hold it, and whose engine it may be."""

    no_attach: Annotated[bool, switch("--no-attach", NO_ATTACH, _MACHINE)] = False


def _bias(value: str) -> tuple[int, float]:
    token, _, bias = value.rpartition(":")
    try:
        pair = int(token), float(bias)
        if pair[0] >= 0 and abs(pair[1]) <= 1e6:  # also false for NaN
            return pair
    except ValueError:
        pass
    raise ValueError("ID:BIAS is needed, such as 1234:-5")


@dataclass(frozen=True, slots=True)
class SettingFlags:
    """Settings of answers; None leaves each to LOCALRUN_*, config.toml or the default."""

    system: Annotated[str | None, _setting("system", "TEXT", ANSWER_PANEL)] = None
    max_tokens: Annotated[int | None, _setting("max_tokens", "N", ANSWER_PANEL)] = None
    temperature: Annotated[float | None, _setting("temperature", "X", ANSWER_PANEL)] = None
    top_k: Annotated[int | None, _setting("top_k", "N", ANSWER_PANEL)] = None
    top_p: Annotated[float | None, _setting("top_p", "X", ANSWER_PANEL)] = None
    min_p: Annotated[float | None, _setting("min_p", "X", ANSWER_PANEL)] = None
    repeat_penalty: Annotated[float | None, _setting("repeat_penalty", "X", ANSWER_PANEL)] = None
    presence_penalty: Annotated[float | None, _setting("presence_penalty", "X", ANSWER_PANEL)] = None
    frequency_penalty: Annotated[float | None, _setting("frequency_penalty", "X", ANSWER_PANEL)] = None
    seed: Annotated[int | None, _setting("seed", "N", ANSWER_PANEL)] = None
    stop_on_loop: Annotated[
        bool | None,
        typer.Option(
            "--stop-on-loop/--no-stop-on-loop",
            metavar="",
            help=SETTINGS["stop_on_loop"].help,
            rich_help_panel=ANSWER_PANEL,
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class AnswerOptions(SettingFlags):
    """Options for the answer: system message, length and sampling."""

    logit_bias: Annotated[
        list[Any] | None,
        typer.Option(
            "--logit-bias",
            parser=checked(_bias, "ID:BIAS"),
            metavar="ID:BIAS",
            help="add BIAS to the logit of a token; repeatable",
            rich_help_panel=ANSWER_PANEL,
        ),
    ] = None
    stop: Annotated[
        list[str] | None,
        typer.Option("--stop", metavar="TEXT", help="stop before this text; repeatable", rich_help_panel=ANSWER_PANEL),
    ] = None
    think: Annotated[
        str,
        typer.Option(
            "--think",
            parser=checked(one_of(*_THINK), "on|off|auto"),
            metavar="on|off|auto",
            autocompletion=complete_word(*_THINK),
            help="whether a thinking model thinks",
            rich_help_panel=ANSWER_PANEL,
        ),
    ] = "auto"
    show_thinking: Annotated[bool, switch("--show-thinking", "show the thinking on stderr", ANSWER_PANEL)] = False

    def check_stop(self) -> tuple[str, ...]:
        """The stop strings. Raises UsageError for an empty one, which would end every answer before its first word."""
        if any(not text for text in self.stop or ()):
            raise UsageError("--stop needs a text")
        return tuple(map(typed_text, self.stop or ()))


def command(function: Callable[..., int]) -> Callable[..., int]:
    """Wrap `function` for typer: a parameter whose type is a dataclass of options becomes all its fields."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if name != "return" and is_dataclass(kind)}
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in groups]
    for group in groups.values():
        group_hints = get_type_hints(group, include_extras=True)
        for field in fields(group):
            annotation = group_hints[field.name]
            parameters.append(inspect.Parameter(field.name, _KEYWORD, default=field.default, annotation=annotation))

    @wraps(function)
    def call(**values: Any) -> int:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name, field.default) for field in fields(group)})
        return function(**values)

    parameters = [p.replace(kind=_KEYWORD) for p in parameters]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: hints.get(p.name, p.annotation) for p in parameters}
    return call
