"""The projector of a GGUF in its repository: the file through which the model sees images."""

from dataclasses import replace

from localrun.base.errors import ModelFileError
from localrun.formats.gguf_names import is_gguf
from localrun.formats.helper_files import PROJECTOR, named_helper
from localrun.hub.http import Http
from localrun.hub.remote import read_headers
from localrun.hub.remote_repo import RemoteFile, RemoteRepo
from localrun.hub.variants import Variant

BEST_FIRST = ("bf16", "f16", "q8_0")  # as projectors are published: their weights are of bf16 checkpoints


def projector_of(http: Http, repo: RemoteRepo, variant: Variant) -> RemoteFile | None:
    """The projector that a GGUF of the repository sees with; None where it has none that is read. Raises HubError."""
    if variant.format != "gguf":
        return None
    for file in sorted(repo.files, key=lambda file: (rank(file.path), file.path)):
        if is_gguf(file.path) and named_helper(file.path) == PROJECTOR and is_read(http, repo, file):
            return file
    return None


def with_file(variant: Variant, file: RemoteFile) -> Variant:
    """The variant, with one more file to download."""
    return replace(variant, files=(*variant.files, file))


def is_read(http: Http, repo: RemoteRepo, file: RemoteFile) -> bool:
    """Whether localrun reads a projector, by its header."""
    from localrun.model.vision.families import required_family  # with numpy, which other downloads do without

    try:
        header = read_headers(http, repo, [file])
        family = required_family(header)
        family.refs(family.config(header), header)
    except ModelFileError:
        return False
    return True


def rank(path: str) -> int:
    """Place of a projector's file type among those that are wanted."""
    words = path.lower().replace(".", "-").split("-")
    return next((place for place, word in enumerate(BEST_FIRST) if word in words), len(BEST_FIRST))
