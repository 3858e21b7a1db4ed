"""Documents in the bodies of requests: their text, which the model reads as that of a file."""

from localrun.base.content import FilePart
from localrun.base.content import text_of as spelled
from localrun.server.request.json_body import Body

KINDS = ("document", "file", "input_file")  # types of parts: Messages, chat completions, Responses


def document_text(part: Body) -> str:
    """A document of any protocol as the model reads it, below its name. Raises Refusal, naming the field."""
    match part.text("type"):
        case "document":
            name, text = part.text("title"), _of_source(part.inner("source"))
            text = "\n\n".join(filter(None, (part.text("context"), text)))
        case "file":
            name, text = _of_file(part.inner("file"))
        case _:
            name, text = _of_file(part)
    return spelled((FilePart(name or "document", text),))


def _of_source(source: Body) -> str:
    match source.choice("type", ("text", "content", "base64"), ""):
        case "text":
            return source.text("data")
        case "content" if isinstance(source.values.get("content"), str):
            return source.text("content")
        case "content":
            return "\n".join(map(_text_of, source.objects("content")))
        case _:
            return _decoded(source, "data")


def _text_of(block: Body) -> str:
    block.choice("type", ("text",), "")
    return block.text("text")


def _of_file(file: Body) -> tuple[str, str]:
    """Name and text."""
    for field in ("file_id", "file_url"):
        if file.values.get(field):
            raise file.wrong(field, "localrun keeps and fetches no files: send the text as file_data, in base64")
    return file.text("filename"), _decoded(file, "file_data")


def _decoded(where: Body, field: str) -> str:
    """The text of a file in base64, or in a data URL of it."""
    encoded = where.text(field)
    if encoded.startswith("data:"):
        encoded = encoded.partition(",")[2]
    needed = "base64 of a text file is needed"
    data = where.decoded(field, encoded, needed)
    if not data:
        raise where.wrong(field, needed)
    if data.startswith(b"%PDF-"):
        raise where.wrong(field, "it is a PDF; send its text, or attach the file in localrun's own chat")
    try:
        if b"\x00" not in data:
            return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    raise where.wrong(field, "it is not UTF-8 text")
