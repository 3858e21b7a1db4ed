"""The CPU library with the instruction set that a measurement was asked for."""

from argparse import ArgumentParser

from localrun.backends.cpu.library import NativeLibrary, load_library, why_no_library


def chosen_library(parser: ArgumentParser, isa: str | None) -> NativeLibrary:
    """The library; `isa` None: with the best set of this machine. Ends the program where there is no library."""
    library = load_library()
    if library is None:
        parser.error(why_no_library())
    if isa:
        library.use_isa(isa)
    return library
