"""Formulas as text: LaTeX becomes Unicode where all of it can, and stays as it was written where not."""

import re
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.dollarmath.index import math_inline_dollar
from mdit_py_plugins.texmath import texmath_plugin
from textual.content import Content

from localrun.base.sanitize import clean

_NAMES = """sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp lim max min sup inf arg argmax argmin
det dim ker gcd deg Pr mod"""
_FUNCTIONS = frozenset(_NAMES.split())
_ACCENTS = frozenset(
    ("mathbb", "mathcal", "mathfrak", "mathbf", "mathit", "mathsf", "hat", "bar", "vec", "tilde", "dot", "ddot")
)
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_WORDS = re.compile(r"\\(?:text|textbf|textit|mathrm|operatorname|boxed|mbox)\*?\{([^{}\\]*)\}")
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\{([^{}]*)\}")
_SPACES = re.compile(r"\\(?:[,;:! ]|quad\b|qquad\b)|~")
_SIZES = re.compile(r"\\(?:left|right|big|Big|bigg|Bigg)[lr]?(?=[^A-Za-z]|\\[{}|])")
_RAISED = re.compile(r"([_^])\{([^{}]*)\}")
_ATOM = re.compile(r"\w+\Z|\\[A-Za-z]+\Z")
_PRICE = re.compile(r"\$\d[\d.,]*[^\d.,$^_=+*/\\a-z-]")


def add_formulas(parser: MarkdownIt) -> None:
    r"""Have it find $…$, $$…$$, \(…\) and \[…\]."""
    dollarmath_plugin(parser, allow_space=False, allow_digits=False, double_inline=True)
    dollars = math_inline_dollar(False, False, True)

    def unless_it_is_money(state: StateInline, silent: bool) -> bool:
        rest = state.src[state.pos :]
        inside = rest.lstrip("$").partition("$")[0]
        return not _PRICE.match(rest) and "`" not in inside and dollars(state, silent)

    parser.inline.ruler.at("math_inline", unless_it_is_money)
    texmath_plugin(parser, delimiters="brackets")


def formula(source: str) -> Content:
    """A formula in a line; one that cannot be shown as text, as it was written."""
    text = readable(source)
    if text is None:
        return Content.styled(clean(f"${source.strip()}$"), "$text-accent on $accent 12%")
    return Content.styled(text, "italic")


@lru_cache(512)
def readable(source: str) -> str | None:
    """The formula in Unicode, nothing of it lost or torn; None where that cannot be."""
    tex = _SPACES.sub(" ", _SIZES.sub("", source.strip().replace("\\{", "❴").replace("\\}", "❵")))
    before = None
    while before != tex:  # from the innermost one on
        before = tex
        tex = _WORDS.sub(r"\1", tex)
        tex = _ROOT.sub(lambda match: f"√{_atom(match[1])}", tex)
        tex = _FRACTION.sub(lambda match: f"{_atom(match[1])}/{_atom(match[2])}", tex)
    tex = _COMMAND.sub(lambda match: f"{match[1]} " if match[1] in _FUNCTIONS else match[0], tex)
    if "\\\\" in tex or "&" in tex:  # several lines, set below each other
        return None
    from unicodeit import replace

    for name in _COMMAND.findall(tex):  # one that it does not know is torn where it begins like one that it does
        if name not in _ACCENTS and re.search("[A-Za-z\\\\]", replace(f"\\{name}")):
            return None
    text = _RAISED.sub(lambda match: match[1] + _atom(match[2]), replace(tex))
    if any(sign in text for sign in "\\{}"):
        return None
    return clean(" ".join(text.replace("❴", "{").replace("❵", "}").split()), keep_newlines=False)


def _atom(part: str) -> str:
    """A part, in parentheses where it is more than a name or a number."""
    part = part.strip()
    return part if _ATOM.match(part) else f"({part})"
