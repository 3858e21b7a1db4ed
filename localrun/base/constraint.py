"""Constraints on an answer: a JSON schema, a regular expression or a grammar that it has to hold to."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Literal, get_args

from localrun.base.dataclass import dataclass
from localrun.base.errors import ConstraintError, UsageError

ConstraintKind = Literal["json_schema", "regex", "lark"]
MAX_SOURCE = 256 << 10  # characters; more than people write by hand, and compiling takes a while
MOST_MULTIPLES = 20_000
NAMES: dict[ConstraintKind, str] = {"json_schema": "schema", "regex": "regular expression", "lark": "grammar"}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A form that an answer has to hold to, from its first character on; thinking stays free.

    `source` is a JSON schema as text, a regular expression, or a grammar in the dialect of Lark that llguidance reads.
    `is_lenient`: keywords of a schema that answers cannot be held to are left out, and a note says which; else they are
    a ConstraintError.
    """

    kind: ConstraintKind
    source: str
    is_lenient: bool = False

    @property
    def name(self) -> str:
        """Name of the kind of constraint."""
        return NAMES[self.kind]


# How JSON is spelled where answers are held to it: as templates write it.
JSON_STYLE: Mapping[str, Any] = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
ANY_OBJECT = Constraint("json_schema", '{"type": "object"}')


def of_schema(schema: Any, is_lenient: bool = False) -> Constraint:
    """The constraint of a JSON schema as plain data. Raises ConstraintError for what is none."""
    try:
        source = json.dumps({} if schema is True else schema, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConstraintError(f"the schema is not JSON: {error}", "give a JSON schema") from None
    return Constraint("json_schema", source, is_lenient)


def one_constraint(
    schema: str | None, regex: str | None, grammar: str | None, is_lenient: bool = False
) -> Constraint | None:
    """The one that is given, checked; None where none is. `schema` is text, `grammar` in Lark. Raises UsageError."""
    given = {"schema": schema, "regex": regex, "grammar": grammar}
    sources = {name: source for name, source in given.items() if source is not None}
    if len(sources) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in sources)} exclude each other", "give one of them")
    if is_lenient and schema is None:
        raise UsageError("--lenient says how to read a schema", "give one with --schema, or leave it out")
    kinds: dict[str, ConstraintKind] = {"schema": "json_schema", "regex": "regex", "grammar": "lark"}
    for name, source in sources.items():
        constraint = Constraint(kinds[name], source, is_lenient)
        check_constraint(constraint)
        return constraint
    return None


def check_constraint(constraint: Constraint) -> None:
    """ConstraintError for one that cannot be compiled, as far as its form tells."""
    if constraint.kind not in get_args(ConstraintKind):
        raise ConstraintError(f"{constraint.kind!r} is no kind of constraint", f"one of {', '.join(NAMES)} is needed")
    if len(constraint.source) > MAX_SOURCE:
        what = f"the {constraint.name} has {len(constraint.source):,} characters"
        raise ConstraintError(what, f"give one of at most {MAX_SOURCE:,}")
    if not constraint.source.strip():
        raise ConstraintError(f"the {constraint.name} is empty", "leave it out, or write it")
    if constraint.kind == "json_schema":
        check_schema(constraint.source)


def check_schema(source: str) -> None:
    """ConstraintError for a text that is no JSON object, as a schema has to be."""
    try:
        schema = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"the schema is not JSON: {error}", "give a JSON schema") from None
    if not isinstance(schema, dict):
        raise ConstraintError("the schema is not a JSON object", 'give a JSON schema, such as {"type": "object"}')
    factors = [Fraction(str(number)).numerator for number in _multiples(schema) if number]
    if math.lcm(*factors) > MOST_MULTIPLES:
        what = f"answers cannot be held to multipleOf {', '.join(map(str, factors))}"
        raise ConstraintError(what, f"their least common multiple may be {MOST_MULTIPLES:,} at most")


def _multiples(schema: Any) -> Iterator[int | float]:
    """All numbers that others have to be multiples of: each takes a state for every remainder."""
    inner: Iterable[Any] = schema if isinstance(schema, list) else ()
    if isinstance(schema, dict):
        number = schema.get("multipleOf")
        if isinstance(number, int | float) and math.isfinite(number):
            yield number
        inner = schema.values()
    for one in inner:
        yield from _multiples(one)
