"""The KV cache as a picture: one sign a block, a row of them for each group of layers."""

from collections import Counter

from textual.content import Content

from localrun.base.sanitize import clean
from localrun.base.units import gib
from localrun.base.views import CacheView, GroupView
from localrun_tui.markdown.wrapping import wrap

# state letter -> (sign, style, what it means); signs differ, so that the picture reads without colour
STATES = {
    "r": ("▓", "$success", "reused"),
    "c": ("█", "$warning", "computed now"),
    "d": ("◆", "$secondary", "read from disk"),
    "w": ("·", "$foreground 40%", "outside the window, freed"),
}
_FREE = ("░", "$foreground 15%")
_EXACT = {"f16", "f32"}


def legend(states: set[str], width: int) -> list[Content]:
    """Legend of the signs that occur."""
    entries = [
        Content.assemble((sign, style), f" {what}") for key, (sign, style, what) in STATES.items() if key in states
    ]
    return wrap(Content("   ").join([*entries, Content.assemble(_FREE, " free")]), width) if entries else []


def group_lines(group: GroupView, total_blocks: int, width: int, block_tokens: int) -> list[Content]:
    """Title, blocks, and how many of them are in which form."""
    states = "".join(state for state in group.states if state in STATES)
    held = sum(state != "w" for state in states)
    name = clean(group.name, keep_newlines=False)
    blocks = "1 block" if held == 1 else f"{held} blocks"
    size = f", {gib(held * group.block_bytes)}" if group.codec in _EXACT else ""  # others have some in 16 bit, too
    holds = f"{blocks}{size}" if held else "no block yet"
    title = Content.assemble((name, "bold"), (f"  {holds}", "$foreground-muted"))
    free = max(min(total_blocks, _rows_of(len(states), width) * width) - len(states), 0)
    picture = Content.assemble(*[STATES[state][:2] for state in states], (_FREE[0] * free, _FREE[1]))
    return [title.truncate(width, ellipsis=True), *picture.fold(width), *wrap(_form(group, held, block_tokens), width)]


def counts(view: CacheView) -> Counter[str]:
    """Number of blocks in each state, over all groups."""
    return Counter(state for group in view.groups for state in group.states if state in STATES)


def _form(group: GroupView, held: int, block_tokens: int) -> Content:
    """The first block and the newest are read in 16 bit, all others in the codec."""
    codec = clean(group.codec, keep_newlines=False)
    if codec in _EXACT:
        words = f", all in {codec}"
    else:
        n_quantised = str(held - 2) if held > 2 else "those between"
        words = f": {n_quantised} quantised ({codec}), the first and the newest in f16"
    return Content.styled(f"{block_tokens} tokens a block{words}", "$foreground-muted")


def _rows_of(n: int, width: int) -> int:
    return max(-(-n // max(width, 1)), 1)
