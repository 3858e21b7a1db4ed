"""Draws the pictures of docs/kv-cache.md. Sizes in them are computed by the code that plans a load."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from localrun.backends.cpu.backend import CpuBackend
from localrun.backends.reference.backend import ReferenceBackend
from localrun.fit.blocks import CacheShape
from localrun.fit.bytes import kv_bytes_by_codec
from localrun.fit.plan import MARGIN
from localrun.fit.precisions import bits_of
from localrun.fit.shape import make_shape
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec
from localrun.ops.kv import KV_CODECS
from tools import ROOT

FOLDER = ROOT / "docs" / "kv-cache"
WIDTH = 760
GIB = 1 << 30
STYLE = """
text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1d2330 }
.small { font-size: 12px; fill: #596275 } .head { font-weight: 600; font-size: 15px } .on { fill: #ffffff }
.on.small { fill: #ffffff } .page { fill: #fbfbfd; stroke: #d9dce3 } .key { fill: #3c6bd0 } .value { fill: #c2660f }
.kept { fill: #26855a } .plain { fill: #e4e8ef; stroke: #b9c0cd }
.gone { fill: none; stroke: #a9b0bd; stroke-dasharray: 4 3 } .label { font-size: 13px } .on.label { fill: #ffffff }
.line { stroke: #6b7486; fill: none } .wide { stroke: #b4322f; fill: none; stroke-width: 2.5 } .tip { fill: #6b7486 }
@media (prefers-color-scheme: dark) {
text { fill: #e6e9f0 } .small { fill: #a7b0c2 } .page { fill: #161a22; stroke: #2b313d } .key { fill: #4f7fe6 }
.value { fill: #c9731f } .kept { fill: #2f9467 } .plain { fill: #2a303c; stroke: #465063 } .gone { stroke: #5d6677 }
.line { stroke: #8b94a6 } .wide { stroke: #ef7d7a } .tip { fill: #8b94a6 } }
"""


@dataclass
class Picture:
    """Shapes one after another; classes are those of STYLE."""

    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, w: float, h: float, kind: str, label: str = "", below: str = "") -> None:
        self.parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="4"/>')
        on = " on" if kind in ("key", "value", "kept") else ""
        if label:
            self.text(x + w / 2, y + h / 2 + 5, label, f"label{on}", "middle")
        if below:
            self.text(x + w / 2, y + h + 15, below, "small", "middle")

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        self.parts.append(f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>')

    def lines(self, x: float, y: float, words: Sequence[str], kind: str = "small") -> None:
        for number, line in enumerate(words):
            self.text(x, y + 17 * number, line, kind)

    def line(self, x1: float, y1: float, x2: float, y2: float, width: float = 1.4) -> None:
        self.parts.append(f'<path class="line" stroke-width="{width:g}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}"/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A line with a tip, straight down, up or to the right."""
        self.line(x1, y1, x2, y2)
        back = y2 - 8 if y2 > y1 else y2 + 8
        corners = ((x2 - 5, back), (x2 + 5, back)) if x1 == x2 else ((x2 - 8, y2 - 5), (x2 - 8, y2 + 5))
        points = " ".join(f"{x:g},{y:g}" for x, y in (*corners, (x2, y2)))
        self.parts.append(f'<polygon class="tip" points="{points}"/>')

    def outline(self, x: float, y: float, w: float, h: float) -> None:
        self.parts.append(f'<rect class="wide" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6"/>')

    def svg(self) -> str:
        page = f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{self.height - 1}" rx="8"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img">'
        inside = "\n".join([f"<title>{escape(self.title)}</title>", f"<style>{STYLE}</style>", page, *self.parts])
        return f"{head}\n{inside}\n</svg>\n"


def phases() -> Picture:
    """Prefill and decode."""
    p = Picture(286, "Reading the prompt takes all its tokens at once; writing takes one token at a time")
    p.text(24, 34, "1  Reading the prompt", "head")
    p.text(404, 34, "2  Writing the answer", "head")
    words = ("Why", "is", "the", "sky", "blue", "?")
    for i, word in enumerate(words):
        p.box(24 + 56 * i, 54, 50, 28, "plain", word)
        p.arrow(49 + 56 * i, 84, 49 + 56 * i, 108)
        p.box(24 + 56 * i, 172, 24, 22, "key", "K")
        p.box(50 + 56 * i, 172, 24, 22, "value", "V")
    p.box(24, 110, 330, 36, "plain", "every layer, all tokens side by side")
    p.arrow(189, 148, 189, 168)
    p.lines(
        24,
        226,
        (
            "Slow because there is much to compute:",
            "every token times every weight.",
            "First token: when all of it is done.",
        ),
    )
    for i in range(len(words)):
        p.box(404 + 46 * i, 172, 20, 22, "key", "K")
        p.box(425 + 46 * i, 172, 20, 22, "value", "V")
    p.box(684, 54, 56, 28, "plain", "The")
    p.arrow(712, 84, 712, 108)
    p.box(404, 110, 336, 36, "plain", "every layer, one token")
    p.arrow(712, 148, 712, 168)
    p.outline(682, 169, 59, 28)
    p.box(686, 172, 24, 22, "key", "K")
    p.box(712, 172, 24, 22, "value", "V")
    for i in range(len(words)):
        p.arrow(424 + 46 * i, 170, 424 + 46 * i, 148)
    p.lines(
        404,
        226,
        (
            "Fast: what was read is kept as K and V.",
            "Each new token adds one pair and reads the others.",
            "Limited by how fast memory can be read.",
        ),
    )
    return p


def attention() -> Picture:
    """What keys and values are for."""
    p = Picture(304, "The new token's query is compared with every key; the values are added up in that proportion")
    words = ("The", "cat", "sat", "on", "the")
    shares = (4, 55, 24, 12, 5)
    p.text(24, 34, "Which words matter for the next one?", "head")
    for i, (word, share) in enumerate(zip(words, shares, strict=True)):
        x = 40 + 96 * i
        p.text(x + 38, 62, f"{share} %", "small", "middle")
        p.box(x, 70, 76, 28, "plain", word)
        p.box(x, 104, 36, 26, "key", "K")
        p.box(x + 40, 104, 36, 26, "value", "V")
        p.line(x + 18, 131, 268, 204, 0.6 + share / 12)
    p.box(214, 205, 108, 30, "kept", "query")
    p.text(268, 254, "of the token being written", "small", "middle")
    p.arrow(324, 220, 404, 220)
    p.box(408, 203, 112, 34, "value", "Σ share × V")
    p.lines(540, 84, ("K, the key: what a token", "can be found by."))
    p.lines(540, 130, ("V, the value: what it then", "has to say."))
    p.lines(540, 176, ("Query: what the new token", "is looking for."))
    p.lines(24, 284, ("Keys and values of a token never change once they are computed. That is why they can be kept.",))
    return p


def tree() -> Picture:
    """Blocks shared by chats."""
    p = Picture(300, "Chats that begin alike share their blocks")
    p.text(24, 34, "Chats that begin alike share blocks of 64 tokens", "head")

    def row(x: float, y: float, labels: Sequence[str], kind: str) -> None:
        for i, label in enumerate(labels):
            p.box(x + 84 * i, y, 78, 30, kind, label)

    row(24, 116, ("system", "system"), "kept")
    row(240, 66, ("question 1", "answer 1", "question 2"), "key")
    row(576, 66, ("answer 2",), "key")
    row(576, 110, ("answer 2′",), "value")
    row(240, 166, ("question A", "answer A"), "plain")
    p.line(186, 131, 236, 82)
    p.line(186, 131, 236, 180)
    p.line(486, 82, 572, 82)
    p.line(486, 82, 572, 124)
    p.text(664, 86, "first try", "small")
    p.text(664, 130, "regenerated", "small")
    p.text(418, 186, "another chat with the same system prompt", "small")
    p.lines(
        24,
        232,
        (
            "Regenerate, edit or switch back: go to the last block that is shared and compute only what follows it.",
            "What is shared is found by token ids, never by guessing; full blocks never change, so sharing is exact.",
            "When memory is needed, ends that nobody used for longest go first; a saved chat comes back from disk.",
        ),
    )
    return p


def windows() -> Picture:
    """Which blocks are held, and in which form."""
    p = Picture(362, "Which blocks each kind of layer holds")
    rows = (
        ("Every layer, f16", "all blocks stay", "k" * 10, ()),
        ("With a quantised cache", "the first and the newest are read in 16 bits", "c" * 10, (0, 9)),
        ("A model's own window", "older blocks go back to the pool", "ggggggkkkk", ()),
        ("--window N", "the first block and the last N tokens stay", "kgggggkkkk", ()),
    )
    for number, (name, says, blocks, wide) in enumerate(rows):
        y = 30 + 74 * number
        p.text(24, y + 14, name, "head")
        p.text(24, y + 34, says, "small")
        for i, kind in enumerate(blocks):
            p.box(330 + 41 * i, y, 35, 28, {"k": "key", "c": "value", "g": "gone"}[kind])
        for i in wide:
            p.outline(327 + 41 * i, y - 3, 41, 34)
    p.box(24, 330, 16, 14, "key")
    p.text(46, 342, "16 bits a number", "small")
    p.box(176, 330, 16, 14, "value")
    p.text(198, 342, "8 or 4 bits", "small")
    p.outline(288, 329, 17, 16)
    p.text(312, 342, "kept in 16 bits as well", "small")
    p.box(476, 330, 16, 14, "gone")
    p.text(498, 342, "given back", "small")
    p.text(735, 342, "newest →", "small", "end")
    return p


def qwen3_8b() -> ModelConfig:
    """The public shape of Qwen3-8B."""
    layer = LayerSpec("full", None, 0, n_heads=32, n_kv_heads=8, head_dim=128, ffn_size=12288)
    return ModelConfig("qwen3", 4096, 151_936, 40_960, 1e-6, (layer,) * 36, (RopeSpec(1e6, 128),))


def codecs() -> Picture:
    """Bytes a token."""
    p = Picture(240, "Bytes that one token takes, by codec")
    p.text(24, 34, "What one token takes (Qwen3-8B, all 36 layers)", "head")
    sizes = kv_bytes_by_codec(qwen3_8b())
    says = {
        "f16": "numbers of 16 bits",
        "q8": "8 bits and a scale: as good as f16",
        "k8v4": "keys 8, values 4 bits: nearly as good",
        "q4": "4 bits: for large models, when nothing else fits",
    }
    for i, (name, size) in enumerate(sizes.items()):
        y = 54 + 44 * i
        share = size / sizes["f16"]
        p.text(24, y + 20, name)
        p.box(76, y, 300 * share, 28, "key" if name == "f16" else "value")
        p.text(84 + 300 * share, y + 19, f"{size / 1024:.0f} KiB, {share:.0%}", "")
        p.text(736, y + 19, says[name], "small", "end")
    return p


def memory() -> Picture:
    """What the free memory is for, with two codecs."""
    p = Picture(276, "What fits beside the weights")
    free, ctx = 9 * GIB, 32_768
    config = qwen3_8b()
    weights = make_shape(config, tied=False).n_params * bits_of("Q4_K_M") / 8
    scratch = CacheShape(config, CpuBackend()).scratch_bytes(ctx, KV_CODECS["f16"], 8)
    rest = scratch + CpuBackend.program_bytes
    p.text(24, 34, f"Qwen3-8B as Q4_K_M, {ctx:,} tokens of context, {free // GIB} GiB of free memory", "head")
    scale = 470 / free
    for row, name in enumerate(("f16", "q8")):
        y, x = 70 + 76 * row, 76.0
        cache = CacheShape(config, ReferenceBackend()).nbytes(ctx, KV_CODECS[name])
        need = weights + cache + rest + MARGIN
        p.text(24, y + 25, name)
        parts = (
            ("kept", weights, "weights"),
            ("value" if name == "q8" else "key", cache, "KV cache"),
            ("plain", rest, ""),
            ("gone", MARGIN, ""),
        )
        for kind, size, label in parts:
            p.box(x, y, size * scale, 38, kind, label)
            x += size * scale
        p.text(x + 12, y + 24, "fits" if need <= free else f"needs {need / GIB:.1f} GiB", "head")
        p.text(76, y + 55, f"weights {weights / GIB:.1f} GiB, cache {cache / GIB:.1f} GiB", "small")
    p.parts.append('<path class="wide" d="M546 58V206"/>')
    p.text(552, 206, f"{free // GIB} GiB are free", "small")
    grey = "Grey is the program and its working memory; the dashed part is left to other programs."
    p.lines(24, 238, (grey, "--kv auto takes the first codec with which the context fits."))
    return p


PICTURES = {
    "phases": phases,
    "attention": attention,
    "tree": tree,
    "windows": windows,
    "codecs": codecs,
    "memory": memory,
}


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
