"""Constraints on answers, as the fields of the protocols say them."""

from localrun.base.constraint import ANY_OBJECT, Constraint, check_constraint, of_schema
from localrun.base.errors import ConstraintError
from localrun.server.json_body import Body


def response_format(body: Body) -> Constraint | None:
    """OpenAI's field of that name: any JSON object, or a schema."""
    wish = body.inner("response_format")
    match wish.choice("type", ("text", "json_object", "json_schema"), "text"):
        case "json_object":
            return ANY_OBJECT
        case "json_schema":
            return schema_in(wish.inner("json_schema"))
    return None


def schema_in(body: Body) -> Constraint:
    """The `schema` of a body. Unless it is `strict`, keywords that answers cannot be held to are left out."""
    if "schema" not in body:
        raise body.wrong("schema", "a JSON schema is needed")
    try:
        constraint = of_schema(body.values["schema"], is_lenient=not body.flag("strict"))
        check_constraint(constraint)
    except ConstraintError as error:
        raise body.wrong("schema", error.message) from None
    return constraint
