"""Files attached to a message of plain chat: by /attach, or by @ and a name inside a line."""

from pathlib import Path

from localrun.base.content import ImagePart, TextPart, images_in
from localrun.base.errors import LocalrunError, UsageError
from localrun.base.views import ImageView
from localrun.chat.attachments import read_attachment, read_text
from localrun.chat.commands import named_file
from localrun.chat.files import read_files
from localrun.chat.image_sizes import cost_of, resized, size_lines, view_of
from localrun.chat.left_out import Attached
from localrun.chat.long_text.part_of_text import CONDENSED, split_part
from localrun.chat.named_files import read_named
from localrun.chat.sight import require_sight
from localrun.chat.turn import preview_request
from localrun.cli.console import note
from localrun.cli.line.chat import LineChat


def attach(chat: LineChat, wanted: str) -> None:
    """Attach a file, a folder, or the files that match a glob."""
    if not wanted:
        raise UsageError("/attach needs a file", "/attach notes.pdf, /attach cat.png, or @notes.pdf inside a message")
    _add(chat, read_files(wanted, Path.cwd(), chat.store.images), "will be sent with the next message")


def size_images(chat: LineChat, typed: str) -> None:
    """Choose the size of attached images if one is given, then tell what they cost in each."""
    if typed:
        chat.attachments = resized(chat.attachments, typed)
    images, costs = images_in(tuple(chat.attachments)), _costs(chat)
    if not images:
        raise UsageError("no image is attached", "/attach cat.png attaches one")
    for number, image in enumerate(images, 1):
        note("\n".join([f"{number}  {image.chip}", *size_lines(image, view_of(image, costs))]))


def take_named(chat: LineChat, text: str) -> str:
    """Attach the files named after an @ in a message; other words stay as typed.

    Returns the message with the names of the files in it.
    """
    found = read_named(text, lambda wanted: read_files(wanted, Path.cwd(), chat.store.images))
    for attached in found.attached:
        _add(chat, attached, "goes along")
    for typed, error in found.refused:
        note(f"({typed} stays text: {error.message})")
    return found.text


def read_file(chat: LineChat, typed: str) -> None:
    """Read a file in parts for a question, and answer that."""
    name, question = named_file(typed)
    if not question:
        raise UsageError(f"/read {name} needs a question", "/read FILE QUESTION")
    from localrun.cli.long_text import read_in_parts

    typed, part = split_part(name)
    path = Path(typed).expanduser()
    if part is not None and path.is_file():
        chat.attachments.append(read_attachment(path, part))
    else:
        path = Path(name).expanduser()
        stats = [message.stats for message in reversed(chat.chat.tree.path(chat.chat.tree.head))]
        shorter = f"/read {name}:{CONDENSED} QUESTION"
        chat.attachments.append(read_in_parts(chat.client, path.name, read_text(path), question, shorter, stats))
    chat.send(question)


def _add(chat: LineChat, attached: Attached, does: str) -> None:
    require_sight(chat.client.info, tuple(attached.files))
    chat.attachments = list(dict.fromkeys([*chat.attachments, *attached.files]))
    costs = _costs(chat) if images_in(tuple(attached.files)) else ()
    for file in attached.files:
        cost = cost_of(file, costs) if isinstance(file, ImagePart) else ""
        note(f"({file.chip}{cost and f', {cost},'} {does})")
    if attached.left_out:
        note(f"({attached.left_out})")


def _costs(chat: LineChat) -> tuple[ImageView, ...]:
    """Costs of attached images; none where the engine does not say."""
    request = preview_request(chat.chat, (*chat.attachments, TextPart("")), chat.shared.options(chat.chat))
    try:
        view = chat.client.preview(request)
    except LocalrunError:  # sending the message says so
        return ()
    return () if view is None else view.images
