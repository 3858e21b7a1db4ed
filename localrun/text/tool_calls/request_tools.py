"""Tools and calls of one request, in the form of its model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import ConstraintError, LocalrunError
from localrun.base.request import Request, TemplateMessage
from localrun.base.tool_choice import functions_of, listed_tools, names_of
from localrun.text.marks import NO_MARKS, Marks
from localrun.text.reasoning import Splitter
from localrun.text.template import ChatTemplate
from localrun.text.tokenizer import Tokenizer
from localrun.text.tool_calls.detect import CallForm, call_form
from localrun.text.tool_calls.harmony_syntax import HarmonyCallParser
from localrun.text.tool_calls.held_calls import HeldCalls, held_calls
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.parser import CallParser
from localrun.text.tool_calls.prompted import with_tools_in_words
from localrun.text.tool_calls.syntax import Tools


@dataclass(frozen=True, slots=True)
class RequestTools:
    """The tools of a request. Without tools it only shows the calls of the history."""

    request: Request
    tokenizer: Tokenizer
    form: CallForm

    @staticmethod
    def of(request: Request, template: ChatTemplate, tokenizer: Tokenizer) -> "RequestTools":
        """Tools of a request that has some, or calls in its messages."""
        return RequestTools(request, tokenizer, call_form(template, bool(request.tools), tokenizer.control_tokens))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user."""
        return (*self.form.notes, *self._free) if self.request.tools else ()

    @property
    def _free(self) -> Iterator[str]:
        """Wishes that are not enforced on voluntary calls."""
        if not self.may_call or self.must_call:
            return
        if self.request.constraint is not None:
            yield "no tool is called: the answer is held to a form of its own"
        elif not self.opening_ids and self.form.dialect.name != "Harmony":
            wishes = ["allowed_tools"] if self.request.allowed_tools else []
            if any(function.get("strict") for function in functions_of(self.request.tools)):
                wishes.append("strict")
            if wishes:
                yield f"calls are not held to {' and '.join(wishes)}: no token begins calls of this model"

    @property
    def _listed(self) -> list[dict[str, Any]]:
        """Tools in the list that the model is shown."""
        return list(map(_shown, listed_tools(self.request)))

    def told(self, messages: Sequence[TemplateMessage]) -> list[TemplateMessage]:
        """The messages, with the tools described in them where the template has no place for tools."""
        if not self._listed or self.form.tool_variables is not None:
            return list(messages)
        return with_tools_in_words(messages, self._listed, self.form.dialect.syntax)

    def shown(self, messages: Sequence[TemplateMessage]) -> list[TemplateMessage]:
        """The messages with calls and results in a form that the template shows completely."""
        return self.form.history.apply(messages, self.form.dialect)

    @property
    def variables(self) -> dict[str, Any]:
        """Variables that give the tools to the template."""
        way = self.form.tool_variables
        return {} if way is None or not self._listed else way(self._listed)

    @property
    def may_call(self) -> bool:
        """Whether the model may call tools."""
        return bool(self.request.tools) and self.request.tool_choice != "none" and not self.request.verbatim

    @property
    def must_call(self) -> bool:
        """Whether the model has to call a tool."""
        return self.request.tool_choice == "required" and self.may_call

    @property
    def held(self) -> list[HeldTool]:
        """The tools that the model may call. Raises ToolSchemaError."""
        allowed = self.request.allowed_tools or names_of(self.request.tools)
        by_name = {one["name"]: one for one in functions_of(self.request.tools) if one.get("name") in allowed}
        return [HeldTool.of(function).checked() for function in by_name.values()]

    def calls(self, tools: Sequence[HeldTool]) -> HeldCalls | None:
        """The constraint on calls of these tools; None where there cannot be one. Raises ConstraintError."""
        if self.request.continues and self.form.dialect.name == "Harmony":
            if self.must_call:
                raise ConstraintError("an answer that is gone on with cannot be made to call a tool", "ask anew")
            return None
        single, marks = not self.request.parallel_tool_calls, self.marks(())
        try:
            return held_calls(self.form.dialect, marks, tools, must_call=self.must_call, is_single=single)
        except RecursionError:
            raise ConstraintError("a schema is nested too deeply", "make it simpler") from None

    def marks(self, tags: Sequence[str]) -> Marks:
        """The tokens among reasoning tags and the marks of calls."""
        return _marks_of(self.tokenizer, (*tags, *self.form.dialect.syntax.marks))

    def parser(
        self, prompt: Sequence[int], splitter: Splitter | None, marks: Marks, is_held: Callable[[str], bool]
    ) -> CallParser | HarmonyCallParser:
        """Parser of an answer to `prompt`. `is_held` says of a call, as its model writes it, whether it may come."""
        dialect = self.form.dialect
        new_id = dialect.ids(prompt, self.request.messages)
        tools = Tools(self.request.tools, lambda call: is_held(dialect.syntax.write([call])))
        return dialect.parser(tools, new_id, splitter, marks, self.must_call)

    @property
    def forbidden_ids(self) -> tuple[int, ...]:
        """Tokens that begin a call, where the model may call nothing."""
        return self.opening_ids if self.request.tool_choice == "none" and self.request.tools else ()

    @property
    def opening_ids(self) -> tuple[int, ...]:
        """Tokens that begin a call."""
        marks = self.marks(())
        opens = list(map(marks.spell, self.form.dialect.syntax.opens))
        return tuple(id for id, stand_in in marks.by_id.items() if stand_in in opens)


def call_marks(template: ChatTemplate, tokenizer: Tokenizer) -> Marks:
    """The tokens among the marks of calls; none for an unreadable template, which is reported elsewhere."""
    try:
        form = call_form(template, True, tokenizer.control_tokens)
    except LocalrunError:
        return NO_MARKS
    return _marks_of(tokenizer, form.dialect.syntax.marks)


def _shown(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as templates know it, without `strict`, which is not for the model."""
    function = tool.get("function")
    if isinstance(function, Mapping) and "strict" in function:
        return {**tool, "function": {name: value for name, value in function.items() if name != "strict"}}
    return {name: value for name, value in tool.items() if name != "strict"}


@lru_cache(maxsize=2)
def _marks_of(tokenizer: Tokenizer, tags: tuple[str, ...]) -> Marks:
    return Marks.of(tokenizer, tags)
