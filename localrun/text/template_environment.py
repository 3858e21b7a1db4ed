"""The jinja2 environment that chat templates are written for: the names that transformers gives them.

Runs in the render process only, since templates come from downloaded files.
"""

import json
from collections.abc import Callable
from datetime import datetime
from types import GeneratorType
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment
from jinja2.utils import Namespace


class TemplateRefusal(TemplateError):
    """The template refuses the messages, by `raise_exception`."""


class GenerationTag(Extension):
    """The tag `{% generation %}` around the assistant's text; its body is rendered, with a scope of its own."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(lineno)

    def _render(self, caller: Macro) -> str:
        return str(caller())


class PlainNamespace(Namespace):
    """A `namespace()` that stores no names with a leading underscore, which lead to Python's internals."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # a namespace may have an attribute called self
        self, *rest = args
        attributes = dict(*rest, **kwargs)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


class DictMaker:
    """`dict` without the type behind it."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


def make_environment(now: Callable[[], datetime], lenient: bool) -> SandboxedEnvironment:
    """Build the environment.

    `lenient` adds what some templates expect of other programs: changing lists, `from_json`, generators as JSON.
    """
    base: type[SandboxedEnvironment] = SandboxedEnvironment if lenient else ImmutableSandboxedEnvironment
    environment = base(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols])
    environment.filters["tojson"] = _lenient_json if lenient else _json
    if lenient:
        environment.filters["from_json"] = json.loads
    environment.globals |= {
        "raise_exception": _refuse,
        "strftime_now": lambda format: now().strftime(format),
        "dict": DictMaker(),
        "namespace": PlainNamespace,
    }
    return environment


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace may not store {name!r}: it begins with an underscore")


def _refuse(message: Any) -> None:
    raise TemplateRefusal(str(message))


def _json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _lenient_json(value: Any, *args: Any, **kwargs: Any) -> str:
    return _json(list(value) if isinstance(value, GeneratorType) else value, *args, **kwargs)
