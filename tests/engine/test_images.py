"""Chats with images in the engine: reused equals computed anew, bit for bit, and no image is encoded without need."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from localrun_testing.cache_engine import GEMMA, GEMMA4, HYBRID, LLAMA, MISTRAL, CacheCase
from localrun_testing.small_model import HIDDEN, finish, greedy, text

from localrun.backends.cpu.library import load_library
from localrun.base.errors import UsageError
from localrun.base.events import ImageProgress
from localrun.base.image_ids import image_ids, is_image, tokens_alone
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationRequest
from localrun.engine.handle import NewToken
from localrun.engine.images import ImageSource, PromptImages, RequestImages
from localrun.ops.image_rows import EncodeProgress, ImageRows, ImageSpan
from localrun.ops.interface import CancelFlag

PLACEHOLDER = 3
CASES = {
    "full f16": CacheCase(LLAMA, "f16"),
    "full q8": CacheCase(LLAMA, "q8"),
    "windows q8": CacheCase(MISTRAL, "q8", "q8", window_blocks=12),
    "mixed, full layers q4": CacheCase(GEMMA, "q4", window_blocks=8),
    "both ways in windows f16, full layers q4": CacheCase(GEMMA4, "q4", window_blocks=10),
    "both ways in windows q8": CacheCase(GEMMA4, "q8", "q8", window_blocks=10),
    "linear attention q8": CacheCase(HYBRID, "q8", window_blocks=24),
}
pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")


@dataclass
class Album:
    """Random images; `encoded` has the digests of those that were encoded, in order. Those that see themselves are
    three times as large, and their angles are those of text."""

    encoded: list[bytes] = field(default_factory=list)
    sees_itself: bool = False

    def source(self, number: int) -> ImageSource:
        lines, columns = divmod(number, 7)[0] % 5 + 1, number % 7 + 1
        span = ImageSpan(number.to_bytes(16, "big"), lines * columns, (lines, columns))
        if self.sees_itself:
            span = ImageSpan(span.digest, 3 * span.n_rows, None, sees_itself=True)

        def rows(progress: EncodeProgress, cancel: CancelFlag) -> ImageRows:
            progress(1.0)
            self.encoded.append(span.digest)
            return ImageRows(np.random.default_rng(number).normal(size=(span.n_rows, HIDDEN)).astype(np.float32))

        return ImageSource(span, rows)

    def ids(self, number: int) -> list[int]:
        return image_ids(number.to_bytes(16, "big"), self.source(number).span.n_rows)

    def request(self, prompt: list[int], max_tokens: int = 10) -> GenerationRequest:
        digests = {one.to_bytes(20, "little")[4:] for one in prompt if is_image(one)}
        sources = {digest: self.source(int.from_bytes(digest, "big")) for digest in digests}
        return replace(greedy(prompt, max_tokens), images=RequestImages(PLACEHOLDER, sources) if sources else None)


@pytest.fixture
def engines() -> Iterator[list[Engine]]:
    opened: list[Engine] = []
    yield opened
    for engine in opened:
        engine.close()


@pytest.fixture
def opened(engines: list[Engine]) -> Callable[..., Engine]:
    def opened(case: CacheCase, keep_prefixes: bool = True) -> Engine:
        engine = case.engine(native=True, keep_prefixes=keep_prefixes)
        axes = np.arange(len(engine.runner.ropes[0].frequencies)) % 3
        engine.runner.ropes = [replace(rope, axes=axes[: len(rope.frequencies)]) for rope in engine.runner.ropes]
        engines.append(engine)
        return engine

    return opened


def watch(engine: Engine) -> dict[tuple[int, ...], bytes]:
    """The logits of every last row from now on, by the keys before them."""
    rows: dict[tuple[int, ...], bytes] = {}
    run = engine.runner.run

    def watched(plan, cancel=None):  # type: ignore[no-untyped-def]
        logits = run(plan, cancel)
        for index, work in enumerate(plan.work):
            sequence, n = work.sequence, work.n
            if sequence.n_computed + n > sequence.cache.reuse.n_tokens:
                rows[tuple(sequence.keys[: sequence.n_computed + n])] = logits.row(index).tobytes()
        return logits

    engine.runner.run = watched  # type: ignore[method-assign]
    return rows


def random_chat(engine: Engine, album: Album, seed: int, turns: int) -> int:
    """Turns with images, edits and branches; how many tokens were not computed."""
    dice = random.Random(seed)
    prompt, chats, saved = [*text(90, seed), *album.ids(33), *text(20, seed)], [], 0
    for turn in range(turns):
        engine.scheduler.cost.rows_per_second = dice.choice((64.0, 200.0, 1000.0))  # chunks end inside images, too
        done = finish(engine.submit(album.request(prompt, dice.randint(1, 12))))
        saved += done.figures.n_cached
        chats.append(done.keys)
        if dice.random() < 0.6:
            prompt = [*done.keys, *text(dice.randint(1, 30), turn)]
        else:  # another branch, after whole images
            prompt = dice.choice(chats)
            cut = dice.randint(len(prompt) // 2, len(prompt))
            while is_image(prompt[cut - 1]):
                cut -= 1
            prompt = [*prompt[:cut], *text(dice.randint(1, 30), turn)]
        if dice.random() < 0.7:
            prompt = [*prompt[:600], *text(3, turn)] if not is_image(prompt[min(599, len(prompt) - 1)]) else prompt
            prompt = [*prompt, *album.ids(dice.randint(20, 60)), *text(dice.randint(1, 9), turn)]
    return saved


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_chat_with_images_that_reuses_equals_one_that_does_not(
    case: CacheCase, opened: Callable[..., Engine]
) -> None:
    reusing, fresh = opened(case), opened(case, keep_prefixes=False)
    found, expected = watch(reusing), watch(fresh)
    few, many = (Album(sees_itself=any(spec.image_spans for spec in case.layers)) for _ in range(2))
    assert random_chat(reusing, few, 1, 10) > 500
    assert random_chat(fresh, many, 1, 10) == 0
    assert len(few.encoded) < len(many.encoded)
    shared = found.keys() & expected.keys()
    assert len(shared) > 60
    assert all(found[keys] == expected[keys] for keys in shared)


def test_a_follow_up_encodes_nothing_and_another_image_is_never_taken_for_it(opened: Callable[..., Engine]) -> None:
    engine, album = opened(CASES["full f16"]), Album()
    prompt = [*text(70), *album.ids(54), *text(9)]
    first = finish(engine.submit(album.request(prompt)))
    assert finish(engine.submit(album.request([*first.keys, *text(5, 1)]))).figures.n_cached >= len(prompt) // 64 * 64
    assert album.encoded == [album.source(54).span.digest]
    other = [*text(70), *album.ids(55), *text(9)]
    assert finish(engine.submit(album.request(other))).figures.n_cached <= 70
    assert len(album.encoded) == 2


def test_penalties_and_the_text_know_nothing_of_rows(opened: Callable[..., Engine]) -> None:
    engine, album = opened(CASES["full f16"]), Album()
    prompt = [*text(7), *album.ids(54), *text(9)]
    done = finish(engine.submit(album.request(prompt)))
    assert PLACEHOLDER not in tokens_alone(prompt)
    assert done.seen.get(PLACEHOLDER, 0) == done.token_ids[done.n_prompt :].count(PLACEHOLDER)
    assert done.token_ids[7 : 7 + len(album.ids(54))] == [PLACEHOLDER] * len(album.ids(54))


def test_progress_comes_before_the_first_token_and_an_error_ends_one_request(opened: Callable[..., Engine]) -> None:
    engine, album = opened(CASES["full f16"]), Album()
    request = album.request([*text(7), *album.ids(54), *text(9)])
    events = list(engine.submit(request))
    assert events[0] == ImageProgress(0, 1, 1.0)
    assert any(isinstance(event, NewToken) for event in events)

    def broken(progress: EncodeProgress, cancel: CancelFlag) -> ImageRows:
        raise UsageError("damaged", "take another")

    span = album.source(55).span
    damaged = replace(
        greedy([*text(7), *album.ids(55), *text(9)]),
        images=RequestImages(PLACEHOLDER, {span.digest: ImageSource(span, broken)}),
    )
    beside = engine.submit(greedy(text(50)))
    with pytest.raises(UsageError, match="damaged"):
        finish(engine.submit(damaged))
    assert finish(beside).stop_reason == "length"


def test_encoding_can_be_cancelled_while_others_are_answered(opened: Callable[..., Engine]) -> None:
    engine, album = opened(CASES["full f16"]), Album()
    given_up: list[bool] = []

    def slow(progress: EncodeProgress, cancel: CancelFlag) -> ImageRows:
        progress(0.1)
        while not cancel.is_set():
            pass
        given_up.append(True)
        return album.source(54).rows(progress, cancel)

    span = album.source(54).span
    images = RequestImages(PLACEHOLDER, {span.digest: ImageSource(span, slow)})
    handle = engine.submit(replace(greedy([*text(7), *album.ids(54), *text(9)]), images=images))
    assert isinstance(next(iter(handle)), ImageProgress)
    assert finish(engine.submit(greedy(text(50)))).stop_reason == "length"
    handle.cancel()
    assert finish(handle).stop_reason == "cancelled"
    assert finish(engine.submit(greedy(text(50)))).stop_reason == "length"


@pytest.mark.parametrize("wrong", ["half", "mixed up", "unknown"])
def test_rows_that_are_no_whole_image_are_refused(wrong: str, opened: Callable[..., Engine]) -> None:
    engine, album = opened(CASES["full f16"]), Album()
    rows = {"half": album.ids(54)[:-1], "mixed up": album.ids(54)[::-1], "unknown": album.ids(55)}[wrong]
    request = replace(album.request([*text(7), *album.ids(54)]), prompt=(*text(7), *rows, *text(3)))
    with pytest.raises(UsageError, match="image"):
        engine.submit(request)


def test_angles_go_on_after_the_highest_of_an_image() -> None:
    album = Album()
    prompt = [5, 5, *album.ids(54), 5, *album.ids(22), 5, 5]
    images = PromptImages(
        prompt, RequestImages(PLACEHOLDER, {album.source(n).span.digest: album.source(n) for n in (54, 22)})
    )
    (lines, columns), second = album.source(54).span.grid or (0, 0), album.source(22).span
    angles = images.angles(0, len(prompt) + 3)
    assert angles[:2].tolist() == [[0] * 3, [1] * 3]
    assert angles[2].tolist() == [2, 2, 2]
    assert angles[2 + lines * columns - 1].tolist() == [2, 2 + lines - 1, 2 + columns - 1]
    after = 2 + max(lines, columns)
    assert angles[2 + lines * columns].tolist() == [after] * 3
    end = after + 1 + second.n_angles
    assert angles[-5:].tolist() == [[end + n] * 3 for n in range(5)]
    assert images.angles(len(prompt) - 1, 2).tolist() == angles[-4:-2].tolist()


def test_an_image_in_the_block_that_a_window_keeps_is_refused(opened: Callable[..., Engine]) -> None:
    engine, album = opened(replace(CASES["full f16"], user_window=130)), Album()
    with pytest.raises(UsageError, match="along with a window"):
        engine.submit(album.request([*text(7), *album.ids(54), *text(9)]))
    done = finish(engine.submit(album.request([*text(64), *album.ids(54), *text(200)])))
    assert done.stop_reason == "length"
