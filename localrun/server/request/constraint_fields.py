"""Parse the constraints on answers from the fields of each protocol."""

import re
from collections.abc import Callable
from functools import partial

from localrun.base.constraint import ANY_OBJECT, Constraint, check_constraint, of_schema
from localrun.base.errors import ConstraintError
from localrun.server.request.json_body import Body

MAX_CHOICES = 4_096  # of an answer that is one of several


def response_format(body: Body) -> Constraint | None:
    """`response_format` of OpenAI's chat, else the fields of vLLM."""
    wish = body.inner("response_format")
    return _format(wish, wish.inner("json_schema")) or structured_outputs(body)


def text_format(body: Body) -> Constraint | None:
    """`text.format` of OpenAI's Responses."""
    wish = body.inner("text").inner("format")
    return _format(wish, wish)


def _format(wish: Body, schema: Body) -> Constraint | None:
    """A format of OpenAI's; `schema` has the schema where it needs one."""
    match wish.choice("type", ("text", "json_object", "json_schema"), "text"):
        case "json_schema":
            return schema_in(schema)
        case "json_object":  # llama.cpp takes a schema for these, too
            return schema_in(wish) if "schema" in wish else ANY_OBJECT
    return None


def output_format(body: Body) -> Constraint | None:
    """`output_config.format` of Anthropic's Messages, or `output_format` as it once was; such schemas are strict."""
    for place, name in ((body.inner("output_config"), "format"), (body, "output_format")):
        if name in place:
            wish = place.inner(name)
            wish.choice("type", ("json_schema",), "")
            return schema_in(wish, is_strict=True)
    return None


def ollama_format(body: Body) -> Constraint | None:
    """`format` of Ollama's API: "json", or a schema."""
    wish = body.values.get("format")
    if wish is None or wish == "":
        return None
    return ANY_OBJECT if wish == "json" else schema_in(body, "format")


def structured_outputs(body: Body) -> Constraint | None:
    """`structured_outputs` of vLLM, or its `guided_…` fields as they once were."""
    inner = body.inner("structured_outputs")
    for name in ("json", "regex", "choice", "grammar"):
        for place, field in ((inner, name), (body, f"guided_{name}")):
            if field in place:
                return _checked(place, field, partial(_structured, name, place, field))
    return None


def _structured(name: str, place: Body, field: str) -> Constraint:
    match name:
        case "json":
            return of_schema(place.values[field])
        case "choice":
            return Constraint("regex", "|".join(map(re.escape, place.texts(field, MAX_CHOICES))))
        case "regex":
            return Constraint("regex", place.text(field))
    return Constraint("lark", place.text(field))


def schema_in(body: Body, name: str = "schema", is_strict: bool | None = None) -> Constraint:
    """The schema of a body. Unless it is `strict`, keywords that answers cannot be held to are left out."""
    if name not in body:
        raise body.wrong(name, "a JSON schema is needed")
    strict = body.flag("strict") if is_strict is None else is_strict
    return _checked(body, name, lambda: of_schema(body.values[name], is_lenient=not strict))


def _checked(body: Body, name: str, read: Callable[[], Constraint]) -> Constraint:
    """The constraint of a field. Raises Refusal, naming it."""
    try:
        constraint = read()
        check_constraint(constraint)
    except ConstraintError as error:
        raise body.wrong(name, error.message) from None
    return constraint
