"""Topic `window`: the saving of a sliding window, which stores keys and values of the last tokens only."""

from localrun.diagnose.explain.topic_report import Curve, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.engine.load import LoadedModel
from localrun.fit.blocks import final_config
from localrun.fit.bytes import kv_bytes, kv_bytes_per_token
from localrun.ops.kv import BLOCK_TOKENS

POINTS = 8


def explain(model: LoadedModel) -> TopicReport:
    ctx, codec = model.plan.ctx, model.plan.codec
    window = max(BLOCK_TOKENS, ctx // 4 // BLOCK_TOKENS * BLOCK_TOKENS)
    plain, short = final_config(model.plan.config, ctx, None), final_config(model.plan.config, ctx, window)
    lengths = [ctx * step // POINTS for step in range(1, POINTS + 1)]
    lines = {
        "all tokens": [float(kv_bytes(plain, codec, n)) for n in lengths],
        f"window {window:,}": [float(kv_bytes(short, codec, n)) for n in lengths],
    }
    per_token = kv_bytes_per_token(plain, codec)
    figures = (
        Figure(f"all of {ctx:,} tokens", "bytes", "tokens · bytes a token", ctx * per_token, lines["all tokens"][-1]),
        Figure(f"with a window of {window:,}", "bytes", "", None, list(lines.values())[1][-1]),
    )
    words = WORDS["window"]
    return TopicReport(
        "window",
        words.title,
        words.text,
        figures,
        (Curve("Bytes of the cache by length of the text", "bytes", "tokens", lengths, lines),),
        "A window makes endless chats possible, and what left it is forgotten: `--window 4096` on a chat about a long "
        "document loses its middle.",
    )
