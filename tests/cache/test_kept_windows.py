"""Models with windows: going back to a place in a long chat recomputes next to nothing, in little memory."""

import pytest
from localrun_testing.integer_model import FULL, IntegerModel, serve, text, windowed

from localrun.backends.reference.backend import ReferenceBackend
from localrun.cache.store import CacheStore
from localrun.fit.blocks import CacheShape, final_config
from localrun.fit.bytes import layer_codecs
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec, group_layers
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS

DEPTH, QUESTION = 8192, 20


class GemmaCache:
    """The cache of a Gemma 3 with the blocks that a plan asks for when memory is short. Nothing is computed."""

    def __init__(self, window: int, kv: str) -> None:
        full = [n % 6 == 5 for n in range(26)]
        layers = tuple(LayerSpec("full" if f else "window", None if f else window, 0, 4, 1, 256, 8) for f in full)
        config = ModelConfig("gemma3", 64, 300, 4 * DEPTH, 1e-6, layers, (RopeSpec(1e6, 256),))
        blocks = CacheShape(config, ReferenceBackend()).groups(2 * DEPTH, KV_CODECS[kv])
        final = final_config(config, 2 * DEPTH, None)
        groups = group_layers(final.layers, layer_codecs(final, KV_CODECS[kv]))
        self.store = CacheStore(groups, [b.count for b in blocks], [b.ring_count for b in blocks])
        self.answers = 0

    def ask(self, prompt: list[int], n_answer: int) -> tuple[list[int], float]:
        """The ids with an answer, the last of which is never computed; and the share of the prompt that was reused."""
        self.answers += 1
        ids = prompt + text(n_answer, self.answers)
        cache = self.store.open(prompt, len(prompt))
        done = cache.n_cached
        while done < len(ids) - 1:
            n = min(512 - done % BLOCK_TOKENS, len(prompt) - done) if done < len(prompt) else 1
            self.store.extend(cache, done, done + n)
            done += n
            self.store.commit(cache, ids, done)
        self.store.close(cache, ids[:-1])
        return ids, cache.n_cached / (len(prompt) - 1)


@pytest.mark.parametrize("kv", ["f16", "q8"])
@pytest.mark.parametrize(("window", "n_answer"), [(512, 60), (512, 700), (1024, 60), (1024, 700)])
def test_a_gemma_goes_back_in_a_long_chat(window: int, n_answer: int, kv: str) -> None:
    cache = GemmaCache(window, kv)
    chat = text(DEPTH - 2 * n_answer, 77)
    for _ in range(2):
        history, prompt = chat, chat + text(QUESTION, len(chat))
        chat, _ = cache.ask(prompt, n_answer)
    for _ in range(2):
        assert cache.ask(prompt, n_answer)[1] == 1, "regenerate"
    for question in (text(QUESTION, 1), [*prompt[len(history) :][:7], *text(90, 2)]):
        edited, reused = cache.ask(history + question, n_answer)
        assert reused > 0.97, "edit the last turn"
    other, _ = cache.ask(chat[: DEPTH * 3 // 4] + text(DEPTH // 4, 3), n_answer)
    branches = [other, edited]
    branches[1], _ = cache.ask(edited + text(QUESTION, 4), n_answer)
    for turn in range(4):
        branches[turn % 2], reused = cache.ask(branches[turn % 2] + text(QUESTION, 5 + turn), n_answer)
        assert reused > 0.97, "switch branch"


@pytest.mark.parametrize("n_question", [5, 60, 200, 250])
def test_the_question_of_a_chat_that_came_at_once_may_be_edited(n_question: int) -> None:
    model = IntegerModel([FULL, windowed(70)], ["f16", "f16"], 40, window_blocks=12)
    history = text(500)
    serve(model, history + text(n_question, 1) + text(900, 2), 500 + n_question)
    cache = serve(model, history + text(20, 3), 520)
    assert cache.n_cached == 500


@pytest.mark.parametrize(("n_chat", "codec"), [(411, "q8"), (446, "f16")], ids=["inside a block", "at the end of one"])
@pytest.mark.parametrize("n_question", [10, 600])
def test_a_question_may_be_edited_again_and_again(n_question: int, n_chat: int, codec: str) -> None:
    model = IntegerModel([FULL, windowed(70), FULL, windowed(70)], [codec, "f16", codec, "f16"], 60, window_blocks=14)
    chat = text(n_chat)
    serve(model, chat, n_chat - 11)
    for seed in range(4):
        ids = [*chat, 1, 2, 3, *text(n_question, 10 + seed), *text(170, 20 + seed)]
        cache = serve(model, ids, n_chat + 3 + n_question)
        assert cache.n_cached == (n_chat if seed == 0 else n_chat + 3)


def test_a_window_is_kept_whole_or_not_at_all() -> None:
    model = IntegerModel([FULL, windowed(180)], ["f16", "f16"], 60, window_blocks=9)
    chats = [text(600, seed) for seed in range(2)]
    for ids in chats:
        serve(model, ids, 600)
    (queue,) = [model.store.tree.queues[pool] for pool, group in enumerate(model.store.groups) if group.replayable]
    assert queue.tails
    assert all(len(tail) >= 180 // BLOCK_TOKENS for tail in queue.tails), "not the beginning of one"
    assert serve(model, [*chats[1], 1]).n_cached == 600
