"""The texts of kernels with our own includes in their places: compilers get one text and no include path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.resources import resource

_INCLUDE = re.compile(r'^#include "([\w.]+)"(  // again)?\n', re.MULTILINE)
EMULATOR_HEADER = "cuda.h"  # of kernels/emulator, where ptx.cuh is not


@dataclass(frozen=True)
class KernelTexts:
    """A folder of kernels. header: one of its files; endings: of those that count."""

    header: str
    endings: tuple[str, ...]

    def folder(self) -> Path:
        """Folder of the kernels, in the checkout or the installed package."""
        return resource(self.header).parent

    @cache  # noqa: B019  (there are two of these)
    def source(self, file: str) -> str:
        """`file` with every file it includes in it once; #line lets messages name the file they mean.

        FileNotFoundError without one of them.
        """
        return self.with_includes(file, {})

    @cache  # noqa: B019
    def file_hashes(self) -> dict[str, str]:
        """Hash of every file, by name; measurements and tests hold for these texts."""
        files = sorted(path for path in self.folder().iterdir() if path.suffix in self.endings)
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files}

    def kernels_hash(self) -> str:
        """Hash of all files together."""
        return hashlib.sha256(repr(self.file_hashes()).encode()).hexdigest()[:16]

    def with_includes(self, file: str, replace: Mapping[str, str]) -> str:
        """`source`, with other texts for some files. Where `// again` is behind an include, the file follows once more,
        with what it brought the first time: under other macros, in another namespace."""
        done: set[str] = set()
        brought: dict[str, set[str]] = {}  # by the file that was included

        def text(name: str) -> str:
            done.add(name)
            own = replace[name] if name in replace else (self.folder() / name).read_text("utf-8")
            own = own.replace("#pragma once\n", "\n")

            def include(match: re.Match[str]) -> str:
                included, again = match.groups()
                if included == EMULATOR_HEADER:
                    return match[0]
                if again:
                    done.difference_update(brought[included])
                if included in done:
                    return "\n"
                before, after = set(done), own.count("\n", 0, match.end()) + 1
                whole = f'{text(included)}#line {after} "{name}"\n'
                brought[included] = done - before
                return whole

            return f'#line 1 "{name}"\n{_INCLUDE.sub(include, own)}'

        return text(file)
