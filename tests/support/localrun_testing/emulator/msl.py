"""Kernels of the Metal Shading Language as C++: what kernels/emulator/metal.h cannot say is rewritten here.

The text has been preprocessed; lines stay where they are. Kernels name the place of every buffer, and a threadgroup
variable is declared on its own (`threadgroup float sums[8][32];`).
"""

from __future__ import annotations

import re

from localrun.base.errors import LocalrunError
from localrun_testing.emulator.build import entry

_HEADER_ENDS = "struct emu_metal_ends_here;"  # metal.h's last line: what follows is the kernels'
_KERNEL = re.compile(
    r"(?:\[\[\s*max_total_threads_per_threadgroup\s*\((?P<threads>[^\]]*)\)\s*\]\]\s*)?\bkernel\s+void\s+(?P<name>\w+)\s*\("
)
MOST_THREADS = "1024"  # of a threadgroup, where a kernel names none
_ATTRIBUTE = re.compile(r"\[\[([^\[\]]*)\]\]")
_PARAMETER = re.compile(
    r"(?P<type>.+?)(?P<name>\w+)\s*\[\[\s*(?P<attribute>\w+)\s*(?:\(\s*(?P<place>\d+)\s*\))?\s*\]\]", re.S
)
_VARIABLE = re.compile(r"\bthreadgroup(\s+(?:const\s+)?[\w:]+(?:\s*<[^<>;]*>)?\s+(\w+)\s*(?:\[[^\]]*\]\s*)*;)")
_ADDRESS_SPACES = re.compile(r"\b(?:device|threadgroup|thread)\b")
_CONSTANT = re.compile(r"\bconst\s+constant\b|\bconstant\s+const\b|\bconstant\b")
_SHARED = 'static __attribute__((section("lr_shared"), used))'


def cpp_of(text: str) -> str:
    """Preprocessed MSL as C++, with what the host calls for each kernel; LocalrunError for what cannot be bound."""
    header, ends, kernels = text.rpartition(_HEADER_ENDS)
    entries = [
        _entry(match["name"], _parameters(kernels, match.end()))
        + f'extern "C" int emu_most_threads_of_{match["name"]} = {match["threads"] or MOST_THREADS};\n'
        for match in _KERNEL.finditer(kernels)
    ]
    kernels = _ATTRIBUTE.sub("", kernels)
    kernels = re.sub(r"\bkernel\b", "static", kernels)
    kernels = _VARIABLE.sub(lambda v: f"{_SHARED}{v[1]} emu_takes(sizeof {v[2]});", kernels)
    return header + ends + _cpp_words(kernels) + "\n" + _cpp_words("".join(entries))


def _parameters(text: str, start: int) -> list[str]:
    """Parameters of the function whose opening parenthesis is at `start`."""
    depth, at, found = 0, start, []
    for place in range(start, len(text)):
        character = text[place]
        if character in ",)" and depth == 0:
            found.append(text[at:place].strip())
            at = place + 1
            if character == ")":
                break
        depth += (character in "([<") - (character in ")]>")
    return found


def _entry(name: str, parameters: list[str]) -> str:
    """A function that takes buffers as they are bound and asks the thread for everything else."""
    buffers: list[tuple[int, str]] = []
    values = []
    for parameter in parameters:
        parts = _PARAMETER.fullmatch(parameter)
        if not parts:
            raise LocalrunError(f"kernel {name}: {parameter!r} has no attribute", "write [[buffer(i)]] or another one")
        if parts["attribute"] == "buffer":
            place = int(parts["place"])
            buffers.append((place, f"{parts['type']} b{place}"))
            values.append(f"b{place}")
        else:
            values.append(f"emu_as<{parts['type'].strip()}>::of(emu_{parts['attribute']}())")
    buffers.sort()
    if [place for place, _ in buffers] != list(range(len(buffers))):
        numbers = [place for place, _ in buffers]
        raise LocalrunError(f"kernel {name} has buffers {numbers}", "number them from 0 on, each once")
    bound = ", ".join(declared for _, declared in buffers)
    return f"static void emu_call_{name}({bound}) {{ {name}({', '.join(values)}); }}\n" + entry(
        name, f"emu_call_{name}"
    )


def _cpp_words(text: str) -> str:
    return _CONSTANT.sub("const", _ADDRESS_SPACES.sub("", text))
