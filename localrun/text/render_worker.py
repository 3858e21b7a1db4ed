"""The process that renders chat templates, which may be killed at any time.

Requests come on stdin in `marshal` form, answers go to stdout as JSON, each after its length in eight bytes.
"""

import json
import marshal
import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, BinaryIO

from jinja2 import Template, nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.meta import find_undeclared_variables

from localrun.text.template_environment import TemplateRefusal, make_environment
from localrun.text.template_fallbacks import TemplateContext, split_texts, variants

_MAX_TEMPLATES = 16
_ORPHAN_SECONDS = 5
_PROBE = "localrun probes for a role"


class OutputLimitError(Exception):
    pass


class Renderer:
    """Compiled templates, and the date they see."""

    def __init__(self) -> None:
        self._now: str | None = None
        self._environments = {lenient: make_environment(self._date, lenient) for lenient in (False, True)}
        self._templates: dict[tuple[str, bool], Template] = {}
        self._reads_parts: dict[str, bool] = {}

    def render(self, source: str, context: TemplateContext, max_chars: int, now: str | None) -> dict[str, Any]:
        """Render as the template was meant to be called; where that fails, in the ways other programs call it."""
        self._now = now
        if self._wants_parts(source):
            split_texts(context)
        try:
            return {"text": self._render(source, False, context, max_chars)}
        except (MemoryError, OutputLimitError):
            raise
        except Exception as error:
            first = error
        self._template(source, lenient=True)
        for changed in variants(context):
            try:
                return {"text": self._render(source, True, changed, max_chars)}
            except (MemoryError, OutputLimitError):
                raise
            except Exception:
                continue
        raise first

    def inspect(self, source: str) -> dict[str, Any]:
        """The variables a template uses, its literal text, and whether it has a system role."""
        tree = self._environments[True].parse(source)
        user = {"role": "user", "content": "?"}
        context = {"messages": [{"role": "system", "content": _PROBE}, user], "add_generation_prompt": True}
        try:
            has_system = _PROBE in self._render(source, True, context | {"tools": None, "functions": ""}, 1 << 20)
        except Exception:
            has_system = False
        literals = {node.data for node in tree.find_all(nodes.TemplateData)}
        literals |= {node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)}
        return {
            "variables": sorted(find_undeclared_variables(tree)),
            "literals": sorted(literals),
            "system": has_system,
        }

    def _wants_parts(self, source: str) -> bool:
        """Whether a template, as those of some models that see, shows parts of a message and of a text nothing."""
        if source not in self._reads_parts:
            if len(self._reads_parts) >= _MAX_TEMPLATES:
                del self._reads_parts[next(iter(self._reads_parts))]
            self._reads_parts[source] = not self._shows(source, _PROBE) and self._shows(
                source, [{"type": "text", "text": _PROBE}]
            )
        return self._reads_parts[source]

    def _shows(self, source: str, content: object) -> bool:
        """Whether a template puts the content of a message into the prompt."""
        context = {"messages": [{"role": "user", "content": content}], "add_generation_prompt": True, "tools": None}
        for lenient in (False, True):  # compiled only for templates that need it
            try:
                return _PROBE in self._render(source, lenient, context, 1 << 20)
            except (MemoryError, OutputLimitError):
                return False
            except Exception:
                continue
        return False

    def _date(self) -> datetime:
        return datetime.fromisoformat(self._now) if self._now else datetime.now()

    def _render(self, source: str, lenient: bool, context: TemplateContext, max_chars: int) -> str:
        template = self._template(source, lenient)
        if lenient:  # some ask for the day by a name that transformers does not give; without hours, to stay cached
            context = {"datetime": self._date().strftime("%b %d %Y"), **context}
        chunks, n_chars = [], 0
        for chunk in template.root_render_func(template.new_context(context)):
            chunks.append(chunk)
            n_chars += len(chunk)
            if n_chars > max_chars:
                raise OutputLimitError
        return "".join(chunks)

    def _template(self, source: str, lenient: bool) -> Template:
        key = source, lenient
        if key not in self._templates:
            if len(self._templates) >= _MAX_TEMPLATES:
                del self._templates[next(iter(self._templates))]
            self._templates[key] = self._environments[lenient].from_string(source)
        return self._templates[key]


def answer(renderer: Renderer, request: dict[str, Any]) -> dict[str, Any]:
    """The result as plain data; `kind` says what caused an error."""
    try:
        calls: dict[str, Callable[..., dict[str, Any]]] = {"render": renderer.render, "inspect": renderer.inspect}
        return calls[request.pop("call")](**request)
    except TemplateRefusal as error:
        return {"kind": "refused", "error": str(error)}
    except TemplateSyntaxError as error:
        return {"kind": "syntax", "error": error.message or "", "line": error.lineno}
    except OutputLimitError:
        return {"kind": "output"}
    except MemoryError:
        return {"kind": "memory"}
    except RecursionError:
        return {"kind": "failed", "error": "it is nested too deeply"}
    except Exception as error:  # anything at all: the code is the template's
        return {"kind": "failed", "error": f"{type(error).__name__}: {error}"}


def limit_memory(n_bytes: int) -> None:
    """Let this process grow by `n_bytes`, where the system can enforce that; the parent watches, too."""
    if sys.platform != "linux":
        return
    import resource

    try:
        with open("/proc/self/statm", "rb") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + n_bytes, now + n_bytes))
    except (OSError, ValueError):
        return


def serve() -> None:
    """Answer requests until stdin ends."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)  # nothing but answers may reach the pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    renderer = Renderer()
    limit_memory(int(sys.argv[2]))
    send(answers, {"ready": True})
    while (request := receive(requests)) is not None:
        _set_alarm(_ORPHAN_SECONDS)
        send(answers, answer(renderer, marshal.loads(request)))
        _set_alarm(0)


def _set_alarm(seconds: int) -> None:
    """Let the system end this process after `seconds`, in case the parent is gone; 0 cancels."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def send(stream: BinaryIO, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    stream.write(len(body).to_bytes(8, "little") + body)
    stream.flush()


def receive(stream: BinaryIO) -> bytes | None:
    header = stream.read(8)
    return stream.read(int.from_bytes(header, "little")) if len(header) == 8 else None
