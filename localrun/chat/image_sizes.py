"""Sizes of attached images: chosen before a message is sent, and what each costs, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from localrun.base.content import Attachment, ImagePart
from localrun.base.errors import UsageError
from localrun.base.image_size import SIZES, size_name
from localrun.base.units import ms
from localrun.base.views import ImageView, SizeView

USAGE = f"/image {'|'.join(SIZES)}, or /image 2 small for the second one"


def resized(attachments: Sequence[Attachment], typed: str) -> list[Attachment]:
    """The attachments, the images among them in a size as in `small`, or one of them as in `2 small`. Raises
    UsageError."""
    images = [one for one in attachments if isinstance(one, ImagePart)]
    if not images:
        raise UsageError("no image is attached", "/attach cat.png attaches one")
    *number, name = typed.split()
    if name not in SIZES or len(number) > 1:
        raise UsageError(f"/image {typed}: that is no size", USAGE)
    chosen = images
    if number:
        if not number[0].isdecimal() or not 1 <= int(number[0][:4]) <= len(images):
            raise UsageError(f"there is no image {number[0]}", f"there are {len(images)}: {USAGE}")
        chosen = [images[int(number[0][:4]) - 1]]
    found = [replace(one, most_rows=SIZES[name]) if one in chosen else one for one in attachments]
    return list(dict.fromkeys(found))


def next_size(image: ImagePart) -> ImagePart:
    """The image in the next smaller size, after the smallest one in the largest."""
    rows = sorted(SIZES.values(), reverse=True)
    smaller = next((most for most in rows if most < image.most_rows), rows[0])
    return replace(image, most_rows=smaller)


def view_of(image: ImagePart, views: Sequence[ImageView]) -> Mapping[str, SizeView]:
    """Costs of an image in each of its sizes; empty where that is not known."""
    return next((view.sizes for view in views if view.sha256 == image.sha256), {})


def cost_of(image: ImagePart, views: Sequence[ImageView]) -> str:
    """Cost of an image in its size, in words; empty where that is not known."""
    view = view_of(image, views).get(size_name(image.most_rows))
    return "" if view is None else cost_words(view)


def cost_words(view: SizeView) -> str:
    """Tokens, and about the seconds of encoding."""
    tokens = f"{view.n_tokens:,} tokens"
    if view.seconds is None:
        return tokens
    return f"{tokens}, {f'≈ {ms(1000 * view.seconds)}' if view.seconds else 'encoded already'}"


def size_lines(image: ImagePart, sizes: Mapping[str, SizeView]) -> list[str]:
    """One line for each size that an image has, the chosen one marked."""
    chosen = size_name(image.most_rows)
    known = [name for name in SIZES if name in sizes]
    return [f"{'●' if name == chosen else '○'} {name:6}  {cost_words(sizes[name])}" for name in known]
