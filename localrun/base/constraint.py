"""Constraints on an answer: a JSON schema, a regular expression or a grammar that it has to hold to."""

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

from localrun.base.errors import ConstraintError

ConstraintKind = Literal["json_schema", "regex", "lark"]
MAX_SOURCE = 256 << 10  # characters; nobody writes more by hand, and compiling takes a while
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
    trigger: int | None = None  # the token up to which an answer is free; None: it never is

    @property
    def name(self) -> str:
        """Its kind, in words."""
        return NAMES[self.kind]


ANY_OBJECT = Constraint("json_schema", '{"type": "object"}')


def of_schema(schema: Any, is_lenient: bool = False) -> Constraint:
    """The constraint of a JSON schema as plain data. Raises ConstraintError for what is none."""
    try:
        source = json.dumps({} if schema is True else schema, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConstraintError(f"the schema is not JSON: {error}", "give a JSON schema") from None
    return Constraint("json_schema", source, is_lenient)


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
