"""Where a chat with recurrent layers is gone on from: states are kept where others may come back, and nowhere else."""

import pytest
from localrun_testing.integer_model import FULL, RECURRENT, IntegerModel, serve, text

from localrun.cache.kinds.recurrent import CHECKPOINT_TOKENS, Recurrent
from localrun.ops.kv import KV_CODECS


def hybrid(n_blocks: int = 60) -> IntegerModel:
    return IntegerModel([RECURRENT, RECURRENT, FULL], ["f32", "f32", "f16"], n_blocks)


def test_a_chat_goes_on_from_its_last_token() -> None:
    model = hybrid()
    ids = text(300)
    serve(model, ids, 200)
    assert serve(model, [*ids, *text(80, 1)]).n_cached == 300
    assert serve(model, [*ids, *text(80, 1), *text(50, 2)]).n_cached == 380


@pytest.mark.parametrize("length", [320, 64, 128])
def test_also_where_a_text_ends_with_a_block(length: int) -> None:
    model = hybrid()
    ids = text(length)
    serve(model, ids, length - 10)
    assert serve(model, [*ids, *text(30, 1)]).n_cached == length


def test_another_answer_and_another_question_need_a_block_of_the_prompt_again() -> None:
    model = hybrid()
    prompt = text(700)
    serve(model, [*prompt, *text(40, 1)], 700)
    assert serve(model, [*prompt, *text(40, 2)], 700).n_cached == 699 // 64 * 64
    edited = [*prompt[:500], *text(150, 3)]
    assert serve(model, edited, 650).n_cached == (699 - 256) // 64 * 64


def test_on_the_way_through_a_long_text_states_are_kept_far_apart() -> None:
    model = hybrid(120)
    ids = text(3500)
    serve(model, ids, chunk=512)
    path = model.store.tree.match(ids).path
    kept = [64 * (number + 1) for number, node in enumerate(path) if node.blocks[0] != -1]
    assert kept[:3] == [CHECKPOINT_TOKENS * n for n in (1, 2, 3)]
    assert len(kept) <= 3 + 2
    found = serve(model, [*ids[:2900], *text(20, 1)])
    assert found.n_cached == 2 * CHECKPOINT_TOKENS
    assert "the nearest state of recurrent layers is at token 2,048" in found.reuse.note


def test_two_states_are_enough_to_answer() -> None:
    """Checkpoints are left out where there is no room."""
    model = hybrid()
    states = model.store.pools[0]
    for _ in range(states.n_free - 2):
        states.allocate()
    store, ids = model.store, text(2000)
    cache = store.open(ids)
    for start in range(0, 2000, 500):
        store.extend(cache, start, start + 500)
        assert model.step(cache, ids, start, 500) == model.truth(ids)[start : start + 500]
        store.commit(cache, ids, start + 500)


def test_a_step_that_was_cancelled_leaves_the_state_it_began_with() -> None:
    model = hybrid()
    store, ids = model.store, text(200)
    cache = store.open(ids)
    for start, stop, is_committed in ((0, 100, True), (100, 160, False), (100, 130, True), (130, 200, True)):
        store.extend(cache, start, stop)
        assert model.step(cache, ids, start, stop - start) == model.truth(ids)[start:stop]
        if is_committed:
            assert store.commit(cache, ids, stop) == stop
    store.close(cache, ids)
    model.check_books([])


def test_a_draft_that_is_accepted_in_part_is_computed_again_from_the_state_before_it() -> None:
    model = hybrid()
    store, ids = model.store, text(140)
    cache = store.open(ids)
    for start, stop, accepted, goes_on in ((0, 100, 100, 100), (100, 108, 103, 100), (100, 140, 130, 128)):
        store.extend(cache, start, stop)
        assert model.step(cache, ids, start, stop - start) == model.truth(ids)[start:stop]
        assert store.commit(cache, ids, accepted) == goes_on


def test_bytes_do_not_depend_on_the_length_of_the_text() -> None:
    kind, f32 = Recurrent.delta_net(16, 32, 128, 128, 4), KV_CODECS["f32"]
    assert kind.nbytes(1, f32) == kind.nbytes(100_000, f32) == kind.block_bytes(f32, 64)
    assert 30 * kind.nbytes(1, f32) == 62.8125 * (1 << 20), "of Qwen3.6-35B-A3B, as others print it"
