"""Detection of a chat template's dialect and its form of calls, by rendering some.

Words that no template has of its own stand for a tool, its arguments, its results and the texts beside them. A dialect
belongs to a template if its parser reads those very calls in the rendered text.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.events import ToolCallDelta
from localrun.base.request import TemplateMessage
from localrun.text.harmony import HarmonySplitter
from localrun.text.message_order import arrange
from localrun.text.template import ChatTemplate
from localrun.text.tool_calls.derived import derived_syntaxes
from localrun.text.tool_calls.dialects import DIALECTS, HERMES, Dialect
from localrun.text.tool_calls.history import FORMS, HistoryForm
from localrun.text.tool_calls.syntax import Tools
from localrun.text.tool_calls.tool_variables import TOOL_VARIABLES, ToolVariables, no_tools
from localrun.text.tool_calls.written import render_written

_TOOL, _KEY, _NUMBER_KEY, _NUMBER = "zqtool", "zqkey", "zqnumber", 71923
_TEXT, _VALUES, _RESULTS = "zqtext", ("zqfirst", "zqsecond"), ("zqresult", "zqother")
_ARGUMENTS = tuple({_KEY: value, _NUMBER_KEY: _NUMBER} for value in _VALUES)
_SCHEMA = {
    "type": "object",
    "properties": {
        _KEY: {"type": "string", "description": "zqwhich"},
        _NUMBER_KEY: {"type": "integer", "description": "zqhow"},
    },
}
_PROBE = {"type": "function", "function": {"name": _TOOL, "description": "zqwhat", "parameters": _SCHEMA}}

_TEMPLATE = "the chat template of this model"
_MARKS = tuple(one for dialect in DIALECTS for one in dialect.syntax.opens if len(one) > 1)


@dataclass(frozen=True, slots=True)
class CallForm:
    """Dialect of a model and form of its history.

    `tool_variables` give the tools to its template; None where it has no place for them.
    """

    dialect: Dialect
    history: HistoryForm
    tool_variables: ToolVariables | None
    notes: tuple[str, ...] = ()  # for the user, where something has to be worked around


def call_form(template: ChatTemplate, tools: bool, tokens: Collection[str] = ()) -> CallForm:
    """The form of calls for a template in chats with or without tools; found once, by rendering.

    `tokens` of the vocabulary point to a dialect that the template does not mention.
    """
    own = [one for one in _MARKS if one in tokens]
    return _found(template.source, template.bos_token, template.eos_token, tools, tuple(own))


@lru_cache(maxsize=32)
def _found(source: str, bos_token: str, eos_token: str, tools: bool, tokens: tuple[str, ...]) -> CallForm:
    template = ChatTemplate(source, bos_token, eos_token)
    variables = next((way for way in TOOL_VARIABLES if _shows_tools(template, way)), None)
    notes = () if variables else (f"{_TEMPLATE} has no place for tools: a system message describes them",)
    probe = _Probe(template, (variables or no_tools)([_PROBE]) if tools else {})
    for dialects in _by_ids(DIALECTS):
        history, section = probe.history(dialects[0], [form for form in FORMS if not form.written])
        if section and (dialect := _reader(section, source, dialects)):
            if history.text_apart:  # now that it is known what opens a call
                history, _ = probe.history(dialect, [form for form in FORMS if not form.written])
            return CallForm(dialect, history, variables, notes)
        if section and (derived := _derived(section)):
            why = f"calls of tools are read as the chat template writes them: {derived.syntax.opens[0]!r} begins one"
            return CallForm(derived, history, variables, (*notes, why))
    hinted = next((one for one in DIALECTS if _is_hinted(one, source, tokens)), HERMES)
    history, _ = probe.history(hinted, FORMS if variables else (*FORMS[:-2], *reversed(FORMS[-2:])))
    why = "leaves calls of tools out" if history.written else "writes calls of tools in a form that is not known"
    told = f"{_TEMPLATE} {why}: they are written and read in the form of {hinted.name}"
    return CallForm(hinted, history, variables, notes or (told,))


def _by_ids(dialects: Sequence[Dialect]) -> list[tuple[Dialect, ...]]:
    """Dialects by the form of their ids: the letters of the first group are valid in all forms."""
    forms = (("nine", "call"), ("numbered",))
    return [tuple(one for form in group for one in dialects if one.id_form == form) for group in forms]


def _is_hinted(dialect: Dialect, source: str, tokens: Collection[str]) -> bool:
    openers = [one for one in dialect.syntax.opens if len(one) > 1]
    return any(text in source for text in (*dialect.hints, *openers)) or any(one in tokens for one in openers)


@dataclass(frozen=True, slots=True)
class _Probe:
    """A template under test; `variables` give it the tools."""

    template: ChatTemplate
    variables: Mapping[str, Any]

    def history(self, dialect: Dialect, forms: Iterable[HistoryForm]) -> tuple[HistoryForm, str]:
        """The first form that is shown completely, and the text after the message's text.

        The last form and an empty text where none is.
        """
        form = HistoryForm()
        for form in forms:
            text = self.render(form.apply(_conversation(), dialect), dialect)
            if _is_whole(text, form):
                return form, text[text.find(_TEXT) + len(_TEXT) :]
        return form, ""

    def render(self, messages: Sequence[TemplateMessage], dialect: Dialect = HERMES) -> str:
        """The text of messages; empty where the template refuses them."""
        try:
            arranged = arrange(self.template, messages).messages
            return render_written(lambda shown: self.template.render(shown, **self.variables), arranged, dialect.syntax)
        except LocalrunError:
            return ""


def _shows_tools(template: ChatTemplate, variables: ToolVariables) -> bool:
    text = _Probe(template, variables([_PROBE])).render([{"role": "user", "content": "zqask"}])
    return _TOOL in text and _KEY in text


def _conversation() -> list[TemplateMessage]:
    """Two calls beside a text and a thought, and their results."""
    calls: list[dict[str, Any]] = [
        {"id": f"zqcallid{n}", "type": "function", "function": {"name": _TOOL, "arguments": arguments}}
        for n, arguments in enumerate(_ARGUMENTS)
    ]
    results: list[TemplateMessage] = [
        {"role": "tool", "tool_call_id": call["id"], "name": _TOOL, "content": text}
        for call, text in zip(calls, _RESULTS, strict=True)
    ]
    said = {"role": "assistant", "content": _TEXT, "reasoning_content": "zqthought", "tool_calls": calls}
    done, more = {"role": "assistant", "content": "zqdone"}, {"role": "user", "content": "zqmore"}
    return [{"role": "user", "content": "zqask"}, said, *results, done, more]


def _is_whole(text: str, form: HistoryForm) -> bool:
    """Whether everything is in the text, in order, neither printed by Python nor quoted twice."""
    first, second = _VALUES
    one, other = _RESULTS
    order = (first, one, second, other) if form.one_a_turn else (first, second, one, other)
    places = [text.find(word) for word in ("zqask", _TEXT, *order, "zqdone", "zqmore")]
    said = text[text.find(_TEXT) :]
    is_plain = f"{{'{_KEY}'" not in said and f'\\"{_KEY}' not in said
    return -1 not in places and places == sorted(places) and is_plain and said.count(str(_NUMBER)) >= 2


def _reader(section: str, source: str, dialects: Iterable[Dialect]) -> Dialect | None:
    """The first dialect that reads the calls."""
    return next((one for one in dialects if _reads(one, section, source)), None)


def _derived(section: str) -> Dialect | None:
    """A dialect derived from these calls."""
    upto = section[: section.find(_RESULTS[0])]
    for syntax in derived_syntaxes(upto, _TOOL):
        dialect = Dialect("of its template", syntax)
        if syntax.opens and syntax.opens[0].strip() and _reads(dialect, section, ""):
            return dialect
    return None


def _reads(dialect: Dialect, section: str, source: str) -> bool:
    """Whether the parser of a dialect finds exactly these calls."""
    if dialect.is_at_start:
        if not any(hint in source for hint in dialect.hints):
            return False
        section = section[section.rfind(dialect.syntax.opens[-1], 0, section.find(_TOOL)) :]
        section = section[: section.find(_RESULTS[0])]
    splitter = HarmonySplitter("") if dialect.name == "Harmony" else None
    parser = dialect.parser(Tools([_PROBE]), lambda index, name: "", splitter)
    calls: dict[int, tuple[str, list[str]]] = {}
    for piece in [*parser.push(section), *parser.flush()]:
        if isinstance(piece, ToolCallDelta):
            calls.setdefault(piece.index, (piece.name, []))[1].append(piece.arguments)
    try:
        found = [(name, json.loads("".join(parts))) for name, parts in calls.values()]
    except ValueError:
        return False
    expected = [(_TOOL, arguments) for arguments in _ARGUMENTS]
    return found == (expected[:1] if dialect.is_at_start and len(found) == 1 else expected)
