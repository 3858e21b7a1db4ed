"""Options as messages name them: everywhere as on the command line, `--ctx 4096`. Python and the app respell them at
their own edges, and a test finds a message with an option that Python could not respell."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from localrun.base.errors import LocalrunError
from localrun.base.setting_rows import SETTINGS

# The options that are no settings, and what Python calls them.
_SAME = ("precision", "think", "stop", "schema", "lenient", "regex", "grammar", "lora")
_OTHERS = {"no-prefix-cache": "prefix_cache=False", **{name: name for name in _SAME}}
_IN_MENU = ("ctx", "kv", "precision")  # of the app: F7 has these, F3 all settings
_PLACES = {  # where the app has what a command does; {} is what it is done with
    "list": "On disk in Models (Ctrl+O)",
    "search": "the Hub in Models (Ctrl+O)",
    "pull": "{} in Models (Ctrl+O)",
    "fit": "F7",
    "history list": "Ctrl+L",
    "rm": "Del in Models (Ctrl+O)",
    "cache clear": "Storage in Models (s)",
}
_COMMAND = re.compile(rf"`localrun ({'|'.join(_PLACES)})(?: ([^`]*))?`")
TOKEN_ANYWHERE = "“Hugging Face token” (Ctrl+P)"  # of the app, where one is taken: from every screen
_TOKEN = re.compile(r"\b(into|needs|with) HF_TOKEN(?:, or /token of the app)?")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])(?:[ =](\d+(?:\.\d+)?|[A-Za-z]\w*))?")


def in_python(text: str) -> str:
    """A message with the options in it as Python spells them: `ctx=4096`."""
    return _OPTION.sub(_respelled, text)


def in_app(text: str, token: str = TOKEN_ANYWHERE) -> str:
    """A message with keys of the app in the place of commands and options: `F7: ctx 4096` the first time, `F7` without
    a value. `token`: where a token of the hub is taken."""
    told: set[str] = set()

    def named(found: re.Match[str]) -> str:
        flag, value = found.groups()
        name = flag.replace("-", "_")
        if name not in SETTINGS and name not in _IN_MENU:
            return found[0]
        key = "F7" if name in _IN_MENU else "F3"
        words = name if value is None else f"{name} {value}"
        if key in told:
            return words
        told.add(key)
        return key if value is None else f"{key}: {words}"

    text = _TOKEN.sub(lambda found: f"{found[1]} {token}", text)
    return _OPTION.sub(named, _COMMAND.sub(lambda found: _PLACES[found[1]].format(found[2] or "a model"), text))


@contextmanager
def python_spelling() -> Iterator[None]:
    """Errors that leave this block name Python's arguments."""
    try:
        yield
    except LocalrunError as error:
        error.message, error.hint = in_python(error.message), in_python(error.hint)
        error.args = (error.message,)
        raise


def _respelled(found: re.Match[str]) -> str:
    flag, value = found.groups()
    name = flag.replace("-", "_")
    if flag in _OTHERS:
        name = _OTHERS[flag]
    elif name not in SETTINGS:
        return found[0]
    if value is None:
        return name
    if value[0].isdigit():
        return f"{name}={value}"
    if flag == "precision" or (name in SETTINGS and value in SETTINGS[name].choices):
        return f'{name}="{value}"'
    return found[0].replace(f"--{flag}", name)  # the next word of the sentence
