"""Results of calls as texts for the model."""

import json
from typing import Any

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from localrun.base.units import gib


def text_of(result: CallToolResult) -> str:
    """Texts one below the other, with a placeholder for other content; else the data of the result."""
    texts = [_spelled(block) for block in result.content]
    if not any(isinstance(block, TextContent) for block in result.content) and result.structured_content is not None:
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return "\n".join(texts)


def _spelled(block: Any) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(data=data, mime_type=kind) | AudioContent(data=data, mime_type=kind):
            return _left_out(kind, data)
        case ResourceLink(uri=uri, name=name):
            return f"[link to {name}: {uri}]"
        case EmbeddedResource(resource=TextResourceContents(uri=uri, text=text)):
            return f"[{uri}]\n{text}"
        case EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=data, mime_type=kind)):
            return f"[{uri}] {_left_out(kind or 'data', data)}"
    return f"[{type(block).__name__}, which is not shown]"


def _left_out(kind: str, data: str) -> str:
    return f"[{kind}, {gib(len(data) * 3 // 4)}, which is not shown]"
