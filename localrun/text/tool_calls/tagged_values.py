"""Values between tags, strings literally and everything else in JSON: their reading, and rules for them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.incoming import SPACE
from localrun.text.tool_calls.lark import LarkRules, literal_regex, sequence
from localrun.text.tool_calls.schema_kinds import branches
from localrun.text.tool_calls.text_values import STRING_KEYWORDS, string_regexes

_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_KINDS = ("object", "array", "number", "string", "boolean", "null")
_KIND_OF_WORD = {"true": "boolean", "false": "boolean", "null": "null"}
# Of values that may be a string or something else: what cannot be read as JSON is a string.
_NO_JSON = r"[^\s0-9{\[\x22-](?s:.*)"
_WORDS = r"(true|false|null|True|False|None)\s*"
_ANYTHING = "(?s:.*)"


def as_json(text: str, kind: str) -> str:
    """The JSON for a text of this kind; of unknown kind: JSON unchanged, other text as a string."""
    stripped = text.strip(SPACE)
    word = _PYTHON_WORDS.get(stripped, stripped)
    try:
        value = json.loads(word, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return json.dumps(text, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) and not kind else word


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


@dataclass(frozen=True, slots=True)
class TaggedValues:
    """Rules for the values of one tool, from the tag up to `end`, which is spelled as in the stream.

    A value is read as `text_kind` and `json_kind`: a string where the first is "string", else JSON if it parses. Both
    are the same in a form whose tags do not say.
    """

    rules: LarkRules
    tool: HeldTool
    end: str
    pad: str  # a part of the end that a value may contain

    def choices(
        self, schema: Any, text_kind: str, json_kind: str, seen: set[int] | None = None
    ) -> Iterator[tuple[bool, str]]:
        """Rules, each with whether it is for a string. `seen` are choices that were visited."""
        found, seen = self.tool.resolved(schema), set() if seen is None else seen
        if id(found) in seen:  # one that refers to itself, say
            return
        values = [found["const"]] if "const" in found else found.get("enum")
        if isinstance(values, list):
            yield from self._spelled(values, text_kind, json_kind)
            return
        if several := branches(found, "anyOf", "oneOf"):
            seen.add(id(found))
            for one in several:
                yield from self.choices(one, text_kind, json_kind, seen)
            return
        yield from self._typed(found, text_kind, json_kind)

    def _typed(self, found: Mapping[str, Any], text_kind: str, json_kind: str) -> Iterator[tuple[bool, str]]:
        """Rules for the types of a resolved schema that is neither a list of values nor of other schemas."""
        kind = found.get("type")
        kinds = {kind} if isinstance(kind, str) else set(kind or ())
        is_any = not kinds and not self.tool.keywords(found)
        if "string" in kinds or is_any:
            self.tool.check_keywords(found, STRING_KEYWORDS)
            yield True, self._string(found, is_sure=text_kind == "string")
        if json_kind == "string":
            return
        if json_kind:
            yield from ((False, rule) for rule in self._json(found, kinds, {"string"}))
            return
        # Words would be begun like a string: they are told from one at the end.
        words = [word for word, kind in _KIND_OF_WORD.items() if kind in kinds or is_any]
        if words:
            yield False, self._ended("|".join(words))
        yield from ((False, rule) for rule in self._json(found, kinds, {"string", "boolean", "null"}))

    def _json(self, schema: Mapping[str, Any], kinds: set[str], without: set[str]) -> Iterator[str]:
        """Rules for JSON values of types other than `without`, if there are any."""
        if not kinds & without and kinds:
            held = schema
        elif kinds <= without and kinds:
            return
        else:
            held = {"allOf": [schema, {"type": [kind for kind in _KINDS if kind not in without]}]}
        yield sequence(self.rules.json(self.tool.rooted(held), not self.tool.is_strict), self.rules.text(self.end))

    def _spelled(self, values: list[Any], text_kind: str, json_kind: str) -> Iterator[tuple[bool, str]]:
        """Rules for the values that are read back unchanged."""
        n_found, mark = 0, self._letters.removeprefix(self.pad)
        for value in values:
            is_text = isinstance(value, str)
            text = value if is_text else json.dumps(value, ensure_ascii=False)
            kind = text_kind if is_text else json_kind
            is_read = is_text if kind == "string" else json.loads(as_json(text, kind)) == value
            if is_read and not (mark and mark in text):
                n_found += 1
                yield is_text, self._ended(literal_regex(text))
        if not n_found:
            self.tool.leave_out("enum")
            yield True, self._string({}, is_sure=True)

    @property
    def _letters(self) -> str:
        """The letters of the end before the first token in it."""
        n = next((n for n, char in enumerate(self.end) if char in self.rules.tokens), len(self.end))
        return self.end[:n]

    def _string(self, schema: Mapping[str, Any], is_sure: bool) -> str:
        regexes = string_regexes(self.tool, schema)
        without = [] if is_sure else [_WORDS]
        if mark := self._letters.removeprefix(self.pad):
            without.append(f"{_ANYTHING}{literal_regex(mark)}{_ANYTHING}")
        return self._ended(_ANYTHING if is_sure else _NO_JSON, *regexes, without=without)

    def _ended(self, regex: str, *others: str, without: Sequence[str] = ()) -> str:
        """Text that matches regular expressions, with the end after it, as one piece."""
        letters = self._letters
        text = self.rules.pattern(regex, *others, without=without, after=letters)
        return sequence(text, self.rules.text(self.end[len(letters) :]))
