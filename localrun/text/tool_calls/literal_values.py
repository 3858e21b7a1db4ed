"""Values of a schema as rules for literals other than JSON: those of Python, and Gemma's maps."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.lark import LarkRules, literal_regex, one_of, sequence
from localrun.text.tool_calls.text_values import STRING_KEYWORDS, string_regexes

_NUMBER_KEYWORDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_KEYWORDS: Mapping[str, frozenset[str]] = {
    "object": frozenset(("properties", "required", "additionalProperties")),
    "array": frozenset(("items", "minItems", "maxItems")),
    "string": STRING_KEYWORDS,
    "integer": _NUMBER_KEYWORDS,
    "number": _NUMBER_KEYWORDS,
    "boolean": frozenset(),
    "null": frozenset(),
}
_ONE = frozenset(("type",))
_BARE_KEY = re.compile(r"[\w.-]+")
_SOME_KEY = "[A-Za-z_][A-Za-z0-9_]{0,63}"
_MOST_ITEMS = 1_000  # that a length of lists is counted up to


@dataclass(frozen=True, slots=True)
class LiteralStyle:
    """Spelling of values: `words` are true, false and null, `quotes` those around strings, as in the stream."""

    words: Mapping[Any, str]
    quotes: tuple[str, ...]
    comma: str
    colon: str
    has_bare_keys: bool  # of maps within values


@dataclass(frozen=True, slots=True)
class LiteralValues:
    """Rules for the values of one tool."""

    rules: LarkRules
    tool: HeldTool
    style: LiteralStyle
    _names: dict[str, str] = field(default_factory=dict)  # of rules for what references point at

    def members(self, schema: Mapping[str, Any], colon: str, is_bare: bool) -> str:
        """Members of an object that the schema names, in order; any members where it names none."""
        self.tool.check_keywords(schema, _KEYWORDS["object"] | _ONE)
        properties = schema.get("properties") or {}
        more = schema.get("additionalProperties", True)
        if not properties and more is not False:
            return self._any_members(more, colon, is_bare)
        required = schema.get("required") or ()
        self.tool.leave_out(*(f"required {name}" for name in required if name not in properties))
        first, following = "", ""  # what comes after the members that are left, at the start and behind others
        comma = self.rules.text(self.style.comma)
        for key, value in reversed(list(properties.items())):
            member = self.rules.rule(sequence(self.key(key, is_bare), self.rules.text(colon), self.value(value)))
            here = sequence(member, following)
            if key in required:
                first, following = here, self.rules.rule(sequence(comma, here))
            else:
                first = self.rules.rule(one_of((here, first or '""')))
                following = self.rules.rule(one_of((sequence(comma, here), following or '""')))
        return first or '""'

    def value(self, schema: Any) -> str:
        """Rule for a value that conforms to a schema."""
        if not isinstance(schema, Mapping):
            if schema is False:
                self.tool.leave_out("false")
            return self._any()
        if "$ref" in schema:
            return self._referred(schema)
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(choices, list):
            return self.rules.rule(one_of(map(self._literal, choices)))
        several = next((name for name in ("anyOf", "oneOf", "allOf") if isinstance(schema.get(name), list)), "")
        if several:
            self.tool.check_keywords(schema, frozenset((several, "type")))
            if (several == "allOf" and len(schema[several]) > 1) or (
                several == "oneOf" and not _is_disjoint(schema[several])
            ):
                self.tool.leave_out(several)
            return self.rules.rule(one_of(map(self.value, schema[several])))
        kind = schema.get("type") or _implied(schema)
        kinds = [kind] if isinstance(kind, str) else kind
        if not all(one in _KEYWORDS for one in kinds):
            self.tool.leave_out(f"type {kind}")
            return self._any()
        if not kinds:
            self.tool.check_keywords(schema, frozenset())
            return self._any()
        self.tool.check_keywords(schema, _ONE.union(*(_KEYWORDS[one] for one in kinds)))
        return self.rules.rule(one_of(self._of_kind(one, {**schema, "type": one}) for one in kinds))

    def key(self, key: str, is_bare: bool) -> str:
        """Rule for the key of a member."""
        return self.rules.text(key) if is_bare and _BARE_KEY.fullmatch(key) else self._quoted(key)

    def _of_kind(self, kind: str, schema: Mapping[str, Any]) -> str:
        match kind:
            case "object":
                kept = {name: value for name, value in schema.items() if name in _KEYWORDS["object"]}
                inner = self.members(kept, self.style.colon, self.style.has_bare_keys)
                return sequence('"{"', f"({inner})", '"}"')
            case "array":
                return self._list(schema)
            case "string":
                return self._string(string_regexes(self.tool, schema))
            case "integer" | "number":
                kept = {name: value for name, value in schema.items() if name in _NUMBER_KEYWORDS}
                return self.rules.json({"type": kind, **kept}, not self.tool.is_strict)
            case "boolean":
                return one_of(f'"{self.style.words[word]}"' for word in (True, False))
        return f'"{self.style.words[None]}"'

    def _list(self, schema: Mapping[str, Any]) -> str:
        least, most = schema.get("minItems") or 0, schema.get("maxItems")
        if not all(isinstance(n, int) and 0 <= n <= _MOST_ITEMS for n in (least, most or 0)):
            self.tool.leave_out(*(name for name in ("minItems", "maxItems") if name in schema))
            least, most = 0, None
        if most == 0:
            return '"[" "]"'
        item = self.value(schema.get("items", True))
        after = f"({sequence(self.rules.text(self.style.comma), item)})"
        times = f"{{{max(least - 1, 0)},{'' if most is None else most - 1}}}"
        items = f"{item} {after}{times}"
        return sequence('"["', items if least else f"({items})?", '"]"')

    def _string(self, regexes: Iterable[str] = ()) -> str:
        """Rule for a string. Between quotes that are letters, strings with a pattern need no escapes."""
        regexes, quoted = tuple(regexes), []
        for quote in self.style.quotes:
            inner = rf"[^{quote}\\\n]*" if regexes else rf"([^{quote}\\\n]|\\[nrt\\'\x22])*"
            if len(quote) == 1 and quote not in self.rules.tokens:
                quoted.append(self.rules.pattern(*regexes, inner, before=quote, after=quote))
            elif quote in self.rules.tokens:
                mark = self.rules.text(quote)
                quoted.append(sequence(mark, self.rules.pattern(*(regexes or ("(?s:.*)",))), mark))
            else:
                without = [f"(?s:.*){literal_regex(quote)}(?s:.*)"]
                quoted.append(self.rules.pattern(*regexes, "(?s:.*)", without=without, before=quote, after=quote))
        return one_of(quoted)

    def _quoted(self, text: str) -> str:
        quote = next((quote for quote in self.style.quotes if quote not in text), self.style.quotes[0])
        if len(quote) == 1 and quote not in self.rules.tokens:
            return self.rules.text(repr(text))
        return sequence(self.rules.text(quote), self.rules.text(text), self.rules.text(quote))

    def _literal(self, value: Any) -> str:
        """Rule for one fixed value."""
        if isinstance(value, str):
            return self._quoted(value)
        if value is None or isinstance(value, bool):
            return f'"{self.style.words[value]}"'
        if isinstance(value, list):
            items = [self._literal(item) for item in value]
            return sequence('"["', f" {self.rules.text(self.style.comma)} ".join(items), '"]"')
        if isinstance(value, Mapping):
            colon = self.rules.text(self.style.colon)
            members = [
                sequence(self.key(key, self.style.has_bare_keys), colon, self._literal(item))
                for key, item in value.items()
            ]
            return sequence('"{"', f" {self.rules.text(self.style.comma)} ".join(members), '"}"')
        return self.rules.text(repr(value))

    def _referred(self, schema: Mapping[str, Any]) -> str:
        self.tool.check_keywords(schema, frozenset(("$ref",)))
        pointer = str(schema["$ref"])
        if pointer not in self._names:
            self._names[pointer] = name = self.rules.open()
            self.rules.close(name, self.value(self.tool.resolved(schema)))
        return self._names[pointer]

    def _any(self) -> str:
        """Rule for any value."""
        if "" not in self._names:
            self._names[""] = name = self.rules.open()
            inner = {kind: {"type": kind} for kind in ("string", "number", "boolean", "null")}
            choices = [self._of_kind(kind, schema) for kind, schema in inner.items()]
            members = self._any_members(True, self.style.colon, self.style.has_bare_keys)
            choices += [self._list({}), sequence('"{"', f"({members})", '"}"')]
            self.rules.close(name, one_of(choices))
        return self._names[""]

    def _any_members(self, schema: Any, colon: str, is_bare: bool) -> str:
        key = self.rules.pattern(_SOME_KEY) if is_bare else self._string((_SOME_KEY,))
        member = sequence(key, self.rules.text(colon), self.value(schema))
        return f"({member} ({sequence(self.rules.text(self.style.comma), member)})*)?"


def _implied(schema: Mapping[str, Any]) -> str | tuple[str, ...]:
    """The type of a schema without one, from its keywords."""
    return next((kind for kind in ("object", "array") if _KEYWORDS[kind] & schema.keys()), ())


def _is_disjoint(schemas: list[Any]) -> bool:
    """Whether no value can conform to two of them, by their types."""
    kinds = [one.get("type") if isinstance(one, Mapping) else None for one in schemas]
    return (
        all(isinstance(kind, str) for kind in kinds)
        and len({*kinds}) == len(kinds)
        and not {*kinds} >= {"integer", "number"}
    )
