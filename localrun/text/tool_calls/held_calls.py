"""Calls constrained to the schemas of their tools: the grammar of an answer, and where it begins."""

from collections.abc import Sequence
from typing import Literal

from localrun.base.constraint import Constraint
from localrun.base.dataclass import dataclass
from localrun.text.answer_start import PromptStart, TriggeredStart
from localrun.text.marks import Marks
from localrun.text.tool_calls.dialects import Dialect
from localrun.text.tool_calls.harmony_syntax import HarmonySyntax
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.lark import LarkRules

BeginsAt = Literal["prompt", "answer", "trigger"]  # the end of the prompt, or of the thoughts; a token that opens calls


@dataclass(frozen=True, slots=True)
class HeldCalls:
    """The constraint holds from where it `begins`, or from one of the `triggers`, tokens that belong to it."""

    constraint: Constraint
    begins: BeginsAt
    triggers: tuple[int, ...]
    notes: tuple[str, ...]  # for the user, of what calls are not held to

    @property
    def start(self) -> PromptStart | TriggeredStart | None:
        """Finder of the position where the constraint begins; None where it begins with the answer."""
        match self.begins:
            case "prompt":
                return PromptStart()
            case "trigger":
                return TriggeredStart(self.triggers)
        return None


def held_calls(
    dialect: Dialect, marks: Marks, tools: Sequence[HeldTool], *, must_call: bool, is_single: bool
) -> HeldCalls | None:
    """The constraint; None where an answer may do without calls and no token begins one. Raises ToolSchemaError."""
    ids: dict[str, list[int]] = {}
    for token_id, stand_in in marks.by_id.items():
        ids.setdefault(stand_in, []).append(token_id)
    syntax = dialect.syntax.spelled(marks.spell)
    triggers = tuple(token_id for opener in syntax.opens for token_id in ids.get(opener, ()))
    rules = LarkRules(ids)
    if tools and isinstance(syntax, HarmonySyntax):
        begins: BeginsAt = "prompt"
        start = syntax.grammar(rules, tools, True) if must_call else syntax.grammar_of_answer(rules, tools)
    elif tools and (must_call or triggers):
        begins = "answer" if must_call else "trigger"
        start = syntax.grammar(rules, tools, is_single)
    else:
        return None
    notes = tuple(note for tool in tools for note in tool.notes)
    return HeldCalls(Constraint("lark", rules.source(start)), begins, triggers, notes)
