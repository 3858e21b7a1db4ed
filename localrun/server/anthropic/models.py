"""The model list in Anthropic's form, at the same address as OpenAI's."""

from datetime import UTC, datetime

from localrun.base.request import Json


def as_anthropic(found: Json) -> Json:
    """A model, or the list of all, from OpenAI's shape."""
    if found["object"] != "list":
        return _model(found)
    rows = [_model(row) for row in found["data"]]
    ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {"first_id": None, "last_id": None}
    return {"data": rows, "has_more": False, **ends}


def _model(row: Json) -> Json:
    return {
        "type": "model",
        "id": row["id"],
        "display_name": row["id"],
        "created_at": datetime.fromtimestamp(row["created"], UTC).isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "max_input_tokens": row.get("context_length"),
        "max_tokens": row.get("context_length"),
    }
