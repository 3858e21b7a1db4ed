"""Write docs/json.md from the schemas that the tests hold every command to."""

from localrun_testing.schemas import SCHEMAS, Schema

from tools import ROOT

PAGE = ROOT / "docs" / "json.md"
HEAD = """# JSON output

Durations are milliseconds unless a field says seconds, rates tokens per second, sizes bytes. Fields may be added.
This page is made by `python -m tools.write_json_docs` from the schemas the tests use; change those.
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"\n## {name}\n\n{section(schema)}" for name, schema in SCHEMAS.items())


def section(schema: Schema) -> str:
    table = rows(schema, "")
    head = ["\n| field | type | |\n|---|---|---|\n"] if table else []
    return "".join([f"{sentence(schema['description'])}\n", *head, *table])


def rows(schema: Schema, prefix: str) -> list[str]:
    """One table row a field; inner objects as `outer.inner`, lists as `outer[]`."""
    if "items" in schema:
        return rows(schema["items"], f"{prefix}[].".removeprefix(".")) if "properties" in schema["items"] else []
    found = []
    for name, inner in schema.get("properties", {}).items():
        nested = rows(inner, f"{prefix}{name}." if "properties" in inner else f"{prefix}{name}")
        found.append(f"| `{prefix}{name}` | {kind(inner)} | {inner.get('description', '')} |\n")
        found += nested
    return found


def kind(schema: Schema) -> str:
    """A type as people read it."""
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "enum" in schema:
        return " or ".join(f'"{value}"' for value in schema["enum"])
    declared = schema["type"]
    kinds: list[str] = declared if isinstance(declared, list) else [declared]
    words = {"integer": "whole number", "array": "list", "string": "text"}
    return " or ".join(words.get(name, name) for name in kinds)


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
