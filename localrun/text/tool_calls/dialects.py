"""Dialects: the forms in which models call tools, one record each."""

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from localrun.base.dataclass import dataclass
from localrun.text.harmony import HarmonySplitter
from localrun.text.marks import NO_MARKS, Marks
from localrun.text.reasoning import Splitter
from localrun.text.tool_calls.events import CallEvents, NewId
from localrun.text.tool_calls.harmony_syntax import HarmonyCallParser, HarmonySyntax
from localrun.text.tool_calls.json_syntax import JsonSyntax
from localrun.text.tool_calls.literal_syntax import GemmaSyntax, PythonSyntax
from localrun.text.tool_calls.named_syntax import NamedSyntax
from localrun.text.tool_calls.parser import CallParser
from localrun.text.tool_calls.syntax import Syntax, Tools
from localrun.text.tool_calls.tagged_syntax import TaggedSyntax

IdForm = Literal["call", "nine", "numbered"]  # call_ and 24 letters; nine letters; functions.NAME:NUMBER


@dataclass(frozen=True, slots=True)
class Dialect:
    """One form of calls. `hints` are texts of a template that point to it where the template shows no calls."""

    name: str
    syntax: Syntax
    hints: tuple[str, ...] = ()
    id_form: IdForm = "call"
    is_at_start: bool = False  # a call is the whole answer
    reads_unmarked: bool = False  # a call that is the whole answer may lack its marks

    def parser(
        self, tools: Tools, new_id: NewId, splitter: Splitter | None = None, marks: Marks = NO_MARKS,
        must_call: bool = False,
    ) -> CallParser | HarmonyCallParser:  # fmt: skip
        """Parser of an answer.

        `splitter` separates thinking from answer; `must_call`: the answer is constrained to calls.
        """
        events = CallEvents(new_id)
        if isinstance(splitter, HarmonySplitter) and splitter.form.names_calls:
            return HarmonyCallParser(splitter, tools, events, marks.plain)
        syntax = self.syntax.spelled(marks.spell)
        own = "".join(syntax.marks)
        plain = Marks({}, {text: char for text, char in marks.by_text.items() if char not in own}).plain
        unmarked = self.reads_unmarked and not must_call
        return CallParser(syntax, tools, splitter, events, plain, self.is_at_start, must_call, unmarked)

    def ids(self, prompt: Sequence[int], messages: Sequence[Mapping[str, Any]]) -> NewId:
        """Ids of the calls in an answer to `prompt`: always the same for the same prompt."""
        digest = hashlib.sha256(array("i", prompt).tobytes())
        n_before = sum(len(message.get("tool_calls") or ()) for message in messages)

        def new_id(index: int, name: str) -> str:
            if self.id_form == "numbered":
                return f"functions.{name}:{n_before + index}"
            of_call = digest.copy()
            of_call.update(index.to_bytes(4, "little"))
            letters = of_call.hexdigest()
            return letters[:9] if self.id_form == "nine" else f"call_{letters[:24]}"

        return new_id


HERMES = Dialect("Hermes", JsonSyntax("<tool_call>", "</tool_call>", pad="\n", between="\n"), reads_unmarked=True)
_QWEN_XML = TaggedSyntax(
    open="<tool_call>", begin="<function=", name_end=">", key="<parameter=", key_end=">", value_end="</parameter>",
    end="</function>", close="</tool_call>", pad="\n", is_bare=True,
)  # fmt: skip
_GLM = TaggedSyntax(
    open="<tool_call>", begin="", name_end="", key="<arg_key>", key_end="</arg_key>", value_begin="<arg_value>",
    value_end="</arg_value>", end="</tool_call>", close="</tool_call>",
)  # fmt: skip
_SEED = TaggedSyntax(
    open="<seed:tool_call>", begin="<function=", name_end=">", key="<parameter=", key_end=">",
    value_end="</parameter>", end="</function>", close="</seed:tool_call>",
)  # fmt: skip
_MINIMAX = TaggedSyntax(
    open="<minimax:tool_call>", begin='<invoke name="', name_end='"', name_close=">", key='<parameter name="',
    key_end='"', value_begin=">", value_end="</parameter>", end="</invoke>", close="</minimax:tool_call>",
    is_section=True,
)  # fmt: skip
_MINICPM = TaggedSyntax(
    open='<function name="', begin="", name_end='"', name_close=">", key='<param name="', key_end='"',
    value_begin=">", value_end="</param>", end="</function>", close="</function>", line="",
)  # fmt: skip


def _dsml(section: str) -> TaggedSyntax:
    """The syntax of DeepSeek V3.2 and V4."""
    tag, end = "<｜DSML｜", "</｜DSML｜"
    return TaggedSyntax(
        open=f"{tag}{section}>", begin=f'{tag}invoke name="', name_end='"', name_close=">",
        key=f'{tag}parameter name="', key_end='"', value_begin=">", value_end=f"{end}parameter>",
        end=f"{end}invoke>", close=f"{end}{section}>", is_section=True,
        attributes=(' string="true"', ' string="false"'),
    )  # fmt: skip


_DEEPSEEK = NamedSyntax(
    section="<｜tool▁calls▁begin｜>", open="<｜tool▁call▁begin｜>", named="<｜tool▁sep｜>",
    close="<｜tool▁call▁end｜>", section_end="<｜tool▁calls▁end｜>",
)  # fmt: skip
_KIMI = NamedSyntax(
    section="<|tool_calls_section_begin|>", open="<|tool_call_begin|>", named="<|tool_call_argument_begin|>",
    close="<|tool_call_end|>", section_end="<|tool_calls_section_end|>", prefix="functions.", number_sign=":",
)  # fmt: skip
_DEEPSEEK_R1 = replace(
    _DEEPSEEK, open="<｜tool▁call▁begin｜>function<｜tool▁sep｜>", named="\n```json\n",
    close="\n```<｜tool▁call▁end｜>",
)  # fmt: skip
_SOLAR = NamedSyntax(
    section="<|tool_calls|>", open="<|tool_call:begin|>", after_id="<|tool_call:name|>", named="<|tool_call:args|>",
    close="<|tool_call:end|>",
)  # fmt: skip
_KIMI_3 = TaggedSyntax(
    open="<|open|>tools<|sep|>", begin='<|open|>call tool="', name_end='"', name_close="<|sep|>",
    key='<|open|>argument key="', key_end='"', value_begin="<|sep|>", value_end="<|close|>argument<|sep|>",
    end="<|close|>call<|sep|>", close="<|close|>tools<|sep|>", line="", is_section=True,
    attributes=(' type="string"', ' type="number"'),
)  # fmt: skip
_MINIMAX_TAG = "]<]minimax[>["
_MINIMAX_3 = TaggedSyntax(
    open=f"{_MINIMAX_TAG}<tool_call>", begin=f'{_MINIMAX_TAG}<invoke name="', name_end='"', name_close=">",
    key=f"{_MINIMAX_TAG}<", key_end=">", value_end=f"{_MINIMAX_TAG}</", value_close=">",
    end=f"{_MINIMAX_TAG}</invoke>", close=f"{_MINIMAX_TAG}</tool_call>", is_section=True,
)  # fmt: skip
_MUSE = TaggedSyntax(
    open="<atem:function_calls>", begin='<atem:invoke name="', name_end='"', name_close=">",
    key='<atem:parameter name="', key_end='"', value_begin=">", value_end="</atem:parameter>", end="</atem:invoke>",
    close="</atem:function_calls>", is_section=True,
)  # fmt: skip
_HUNYUAN = TaggedSyntax(
    open="<tool_calls:opensource>", begin="<tool_call:opensource>", name_end="<tool_sep:opensource>",
    key="<arg_key:opensource>", key_end="</arg_key:opensource>", value_begin="<arg_value:opensource>",
    value_end="</arg_value:opensource>", end="</tool_call:opensource>", close="</tool_calls:opensource>",
    is_section=True,
)  # fmt: skip
_COHERE = JsonSyntax(
    "<|START_ACTION|>", "<|END_ACTION|>", is_list=True, name="tool_name", arguments="parameters", id="tool_call_id",
)  # fmt: skip
_LLAMA = JsonSyntax("<|python_tag|>", "", arguments="parameters", bare=("{",), between="; ", writes_marks=False)

# The first that reads what a template writes is the model's.
DIALECTS: tuple[Dialect, ...] = (
    HERMES,
    Dialect("Seed", _SEED),
    Dialect("tagged XML", _QWEN_XML),
    Dialect("GLM", _GLM),
    Dialect("Gemma 4", GemmaSyntax()),
    Dialect("Harmony", HarmonySyntax(), hints=("<|channel|>commentary",)),
    Dialect("Mistral", NamedSyntax("[TOOL_CALLS]", "[ARGS]"), id_form="nine"),
    Dialect("Mistral with ids", NamedSyntax("[TOOL_CALLS]", "[ARGS]", before_id="[CALL_ID]"), id_form="nine"),
    Dialect("Mistral Nemo", JsonSyntax("[TOOL_CALLS]", "", is_list=True, id="id"), id_form="nine"),
    Dialect("pythonic", PythonSyntax("<|tool_call_start|>", "<|tool_call_end|>"), hints=("<|tool_list_start|>",)),
    Dialect("Nemotron v2", JsonSyntax("<TOOLCALL>", "</TOOLCALL>", is_list=True)),
    Dialect("MiniMax", _MINIMAX),
    Dialect("MiniMax 3", _MINIMAX_3),
    Dialect("JSON in tool_calls", JsonSyntax("<tool_calls>", "</tool_calls>", is_list=True)),
    Dialect("DeepSeek", _DEEPSEEK),
    Dialect("DeepSeek R1", _DEEPSEEK_R1),
    Dialect("DeepSeek 3.2", _dsml("function_calls")),
    Dialect("DeepSeek 4", _dsml("tool_calls")),
    Dialect("Kimi", _KIMI, id_form="numbered"),
    Dialect("Kimi 3", _KIMI_3),
    Dialect("Cohere", _COHERE),
    Dialect("Granite 3", JsonSyntax("<|tool_call|>", "", is_list=True)),
    Dialect("GigaChat", JsonSyntax("<|function_call|>", "")),
    Dialect("GigaChat 3", JsonSyntax("function call<|role_sep|>\n", "")),
    Dialect("Hunyuan", _HUNYUAN),
    Dialect("Solar", _SOLAR),
    Dialect("Muse", _MUSE),
    Dialect("Apertus", JsonSyntax("<|tools_prefix|>", "<|tools_suffix|>", is_list=True, is_keyed=True)),
    Dialect("MiniCPM", _MINICPM),
    Dialect("Llama 3", _LLAMA, hints=("<|python_tag|>", "Environment: ipython"), is_at_start=True),
    Dialect("Llama 4", PythonSyntax("", ""), hints=("<|python_start|>",), is_at_start=True),
)
