"""Errors of the `tokenizers` library: plain Exceptions, and panics, which are not Exceptions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from localrun.base.errors import LocalrunError
from localrun.formats.files import shown


@contextmanager
def tokenizer_errors(error: Callable[[str], LocalrunError]) -> Iterator[None]:
    """Turn both kinds into `error(reason)`."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError, LocalrunError):
        raise
    except BaseException as caught:
        raise error(shown(str(caught))) from caught
