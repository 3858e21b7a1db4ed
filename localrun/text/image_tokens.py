"""Images in a prompt: the template places them by a control token, which their rows then take the place of."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localrun.base.content import is_image_part
from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError, UsageError
from localrun.base.image_ids import image_ids
from localrun.base.image_size import ImageKey, image_key
from localrun.base.sanitize import clean
from localrun.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ImageTokens:
    """Control tokens of a model's images: what the template writes for one, and what comes around its rows."""

    placeholder: int
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @classmethod
    def of(cls, tokenizer: Tokenizer, placeholder: str, before: str = "", after: str = "") -> "ImageTokens":
        """Look up the ids of these texts, where there are some. Raises ModelFileError for one that is no token."""

        def ids(text: str) -> tuple[int, ...]:
            found = tuple(tokenizer.encode(text, special=True)) if text else ()
            if len(found) != bool(text):
                raise ModelFileError("BAD_VOCAB", f"the tokenizer lacks {text}, a token of images", path="")
            return found

        (placeholder_id,) = ids(placeholder)
        return cls(placeholder_id, ids(before), ids(after))


@dataclass(frozen=True, slots=True)
class PromptImage:
    """An image as a prompt has it."""

    digest: bytes
    n_rows: int


KnownImages = Mapping[ImageKey, PromptImage]


def image_keys(messages: Iterable[Mapping[str, Any]]) -> list[ImageKey]:
    """The keys of all images in messages, in their order."""
    contents = [message["content"] for message in messages if isinstance(message.get("content"), list)]
    return [image_key(part) for content in contents for part in content if is_image_part(part)]


def as_template_parts(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message as templates take it: they place an image, and need to know no more of it."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [{"type": "image"} if is_image_part(part) else part for part in content]}


def placed_images(messages: Iterable[Mapping[str, Any]], known: KnownImages) -> list[PromptImage]:
    """The images of messages, in their order; `known` by their keys. Raises UsageError for one that is not."""
    keys = image_keys(messages)
    for sha256, most_rows in keys:
        if (sha256, most_rows) not in known:
            raise UsageError(f"the image {clean(sha256[:12])} is not there any more", "attach it again")
    return [known[key] for key in keys]


def with_rows(ids: Sequence[int], images: Sequence[PromptImage], tokens: ImageTokens) -> list[int]:
    """The ids of a prompt, every placeholder replaced by the rows of the next image."""
    n_places = ids.count(tokens.placeholder)
    if n_places != len(images):
        what = f"the chat template has places for {n_places} of {len(images)} images"
        raise UsageError(what, "send fewer images, or put them into messages of the user")
    left = iter(images)
    found: list[int] = []
    for one in ids:
        if one == tokens.placeholder:
            image = next(left)
            found += [*tokens.before, *image_ids(image.digest, image.n_rows), *tokens.after]
        else:
            found.append(one)
    return found
