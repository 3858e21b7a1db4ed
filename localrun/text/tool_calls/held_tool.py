"""A tool whose calls are constrained to its schema, and the parts of the schema that cannot be enforced."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from localrun.base.constraint import check_constraint, of_schema
from localrun.base.dataclass import dataclass
from localrun.base.errors import ConstraintError, ToolSchemaError
from localrun.text.tool_calls.schema_kinds import resolved

ANY_ARGUMENTS: Mapping[str, Any] = {"type": "object"}
NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "nullable")
)
_DEFINITIONS = frozenset(("$schema", "$id", "$comment", "$defs", "definitions", "$anchor"))


@dataclass(frozen=True, slots=True)
class HeldTool:
    """A constrained tool. Omitted parts of a strict tool's schema are an error, of others a note."""

    name: str
    schema: Mapping[str, Any]
    is_strict: bool = False
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, function: Mapping[str, Any]) -> "HeldTool":
        """Tool from a function in the OpenAI format; without parameters it takes no arguments."""
        parameters = function.get("parameters")
        schema = parameters if isinstance(parameters, Mapping) else NO_ARGUMENTS
        return cls(str(function["name"]), schema, function.get("strict") is True)

    def checked(self) -> "HeldTool":
        """The same tool with a schema of objects. Raises ToolSchemaError."""
        schema = self.schema if "type" in self.schema else {**self.schema, "type": "object"}
        try:
            if "object" not in _types(schema):
                raise ConstraintError("arguments are always an object", "give a schema of the type object")
            check_constraint(of_schema(schema))
        except ConstraintError as error:
            return self.loose(error.message)
        return HeldTool(self.name, schema, self.is_strict, self.notes)

    def loose(self, why: str) -> "HeldTool":
        """The same tool with any arguments. Raises ToolSchemaError where it is strict."""
        self._leave_out(f"its schema: {why}")
        return HeldTool(self.name, ANY_ARGUMENTS, False, self.notes)

    def leave_out(self, *keywords: str) -> None:
        """Omit keywords of the schema. Raises ToolSchemaError where the tool is strict."""
        for keyword in keywords:
            self._leave_out(f"{keyword!r} of its schema")

    def _leave_out(self, what: str) -> None:
        if self.is_strict:
            said = f"calls of the tool {self.name!r} cannot be held to {what}"
            raise ToolSchemaError(said, "leave that out, say it in another way, or leave out strict")
        note = f"calls of the tool {self.name!r} are not held to {what}"
        if note not in self.notes:
            self.notes.append(note)

    def resolved(self, schema: Any) -> Mapping[str, Any]:
        """The schema that references lead to; an empty one stands for any value."""
        found = resolved(self.schema, schema)
        if schema is False:
            self.leave_out("false")
        if not found and isinstance(schema, Mapping) and "$ref" in schema:
            self.leave_out(f"$ref {str(schema['$ref'])[:80]}")
        return found

    def rooted(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """A part of the schema with the definitions that it may refer to."""
        return {**schema, **{name: self.schema[name] for name in ("$defs", "definitions") if name in self.schema}}

    def check_keywords(self, schema: Mapping[str, Any], known: frozenset[str]) -> None:
        """Omit all keywords but the known ones."""
        self.leave_out(*(name for name in self.keywords(schema) if name not in known))

    @staticmethod
    def keywords(schema: Mapping[str, Any]) -> list[str]:
        """The keywords of a schema that restrict values."""
        return [name for name in schema if name not in _ANNOTATIONS | _DEFINITIONS and not name.startswith("x-")]


def _types(schema: Mapping[str, Any]) -> Iterator[str]:
    kind = schema.get("type")
    yield from [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
