"""The codec of a stored chat, which the next load of its model uses again."""

from localrun.base.paths import writable_folder
from localrun.base.request import LoadOptions
from localrun.ops.types import NUMERICS_VERSION
from localrun.storage.block_files import DISK_FOLDER
from localrun.storage.inventory import CodecTokens, codec_of


def codec_before(options: LoadOptions) -> CodecTokens | None:
    """The codec in which the continued chat is stored."""
    home = writable_folder("cache") if options.chat_id else None
    if home is None:
        return None
    return codec_of(home / DISK_FOLDER, options.chat_id, options.path, options.precision, NUMERICS_VERSION)
