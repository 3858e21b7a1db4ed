"""State of one generation in the engine: token ids, how many are computed, and when it ends. No tensors."""

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import field

import numpy as np

from localrun.base.check import check_bias, check_ids, check_logprobs, check_number, check_sampling
from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError, prompt_too_long
from localrun.base.events import ImageProgress, StopReason
from localrun.base.image_ids import has_images, tokens_alone
from localrun.base.request import Priority
from localrun.cache.bulk import bulk_tokens, keys_of
from localrun.cache.sequence_cache import SequenceCache
from localrun.engine.constrained import Constrained
from localrun.engine.encoding import Encoding
from localrun.engine.figures import GenerationFigures
from localrun.engine.images import PromptImages, RequestImages
from localrun.engine.loops import CHECK_TOKENS, loop_period
from localrun.engine.sampler import SamplerSettings
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.token_counts import TokenCounts
from localrun.storage.restore import Restore

WHY_READ = "read again for the logprobs of its tokens"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Token ids in, at most `max_tokens` out; any id of `stop_ids` ends the answer and is not part of it.

    With `rolls` the answer goes on past the context, and the middle of the text is forgotten. Of a warm-up only the
    prompt is computed, while nothing else is to be done, for the cache to have it.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    stop_ids: frozenset[int]
    settings: SamplerSettings
    seed: int
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    rolls: bool = False
    priority: Priority = "interactive"
    deadline: float | None = None  # on the clock of time.perf_counter: the answer ends then with what there is
    is_warm_up: bool = False
    stop_on_loop: bool = False
    logprobs: int | None = None  # alternatives beside each token of the answer; None: no logprobs
    prompt_logprobs: int | None = None  # likewise of the prompt's, which are all computed
    take_hidden: Callable[[np.ndarray], None] | None = None  # takes the hidden rows of the prompt, likewise, in order
    chat: str = ""  # the kept chat that this is of: what is computed for it may go to the disk
    rewritten: str = ""  # reason that the prompt does not begin with the earlier chat, for the user
    images: RequestImages | None = None  # those whose rows are among `prompt`
    begin_constraint: Callable[[Callable[[], None]], Constrained] | None = None  # takes what wakes the engine

    def check(self, vocab_size: int, ctx: int, can_roll: bool) -> None:
        """Check before anything is computed. Raises UsageError or PromptTooLongError."""
        self._check_length(ctx, can_roll)
        if not self.prompt:
            raise UsageError("the prompt is empty", "give at least one token")
        check_ids(tokens_alone(self.prompt), vocab_size)
        check_sampling(self.settings)
        check_number("seed", self.seed)
        check_bias(self.logit_bias, vocab_size)
        check_logprobs("logprobs", self.logprobs)
        check_logprobs("prompt_logprobs", self.prompt_logprobs)
        if self.prompt_logprobs is not None and has_images(self.prompt):
            raise UsageError("a prompt with an image has no logprobs", "ask for those of the answer, or leave it out")
        wants_prompt = self.is_warm_up or self.prompt_logprobs is not None or self.take_hidden is not None
        if self.max_tokens != 0 or not wants_prompt:  # the prompt may be all
            check_number("max_tokens", self.max_tokens)

    def _check_length(self, ctx: int, can_roll: bool) -> None:
        if self.rolls and not can_roll:
            why = "positions of this model depend on the size of the context"
            raise UsageError(
                "the middle of a text cannot be forgotten here: "
                + (why if ctx >= 2 * BLOCK_TOKENS else "the context is too small"),
                "let the answer end at the context, or drop the oldest turns",
            )
        if len(self.prompt) >= ctx and not self.rolls:
            raise prompt_too_long(f"{len(self.prompt):,} tokens", ctx, len(self.prompt))


@dataclass(eq=False, slots=True)
class GenerationState:
    """The tokens of one generation and what is computed of them: what scheduler, runner and sampler work on.

    `span`: tokens of a span of the prompt that are read in bulk; 0: none are.
    """

    request: GenerationRequest
    span: int = 0
    constraint: Constrained | None = None
    n_prompt: int = field(init=False)
    number: int = field(default_factory=lambda: next(_numbers))
    token_ids: list[int] = field(default_factory=list)
    keys: list[int] = field(init=False)  # what names them in the cache: the same list but for bulk and images
    images: PromptImages | None = field(init=False)
    n_computed: int = 0  # tokens whose keys and values are in the cache
    n_scored: int = field(init=False)  # tokens, from the first on, after which no logprobs are wanted any more
    n_behind: int = 0  # tokens before the newest that a decode computes with it: forced, or taken back with a state
    restore: Restore | None = None  # what is kept on disk of the prompt, on its way back
    encoding: Encoding | None = None  # of the images that it needs
    tell: Callable[[ImageProgress], None] = lambda progress: None  # hears of that
    turn: int = 0  # when it gets the next chunk of its prompt: the lowest goes first
    admitted: bool = False
    cache: SequenceCache | None = None
    seen: TokenCounts = field(init=False)  # of prompt and answer
    counts: TokenCounts = field(default_factory=TokenCounts)  # of the answer
    loop_period: int = 0  # tokens that the answer repeats over and over, once that is known
    stop_reason: StopReason | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    raised: threading.Event = field(default_factory=threading.Event)  # it is to go before lower classes
    priority: Priority = field(init=False)
    figures: GenerationFigures = field(default_factory=GenerationFigures)

    def __post_init__(self) -> None:
        self.priority = self.request.priority
        prompt = list(self.request.prompt)
        self.n_prompt = len(prompt)
        self.images = PromptImages(prompt, self.request.images) if self.request.images else None
        self.token_ids = prompt if self.images is None else self.images.token_ids
        self.keys = keys_of(prompt, self.span)
        self.n_scored = self.n_prompt - 1 if self.request.prompt_logprobs is None else 0
        self.seen = TokenCounts(prompt if self.images is None else tokens_alone(prompt))

    @property
    def is_warm_up(self) -> bool:
        return self.request.is_warm_up

    @property
    def n_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def n_bulk(self) -> int:
        """Tokens that are read in bulk: the first of the prompt."""
        return bulk_tokens(self.n_prompt, self.span)

    @property
    def n_generated(self) -> int:
        return len(self.token_ids) - self.n_prompt

    @property
    def n_to_come(self) -> int:
        """Tokens of the answer, at most."""
        return max(0, self.request.max_tokens - self.n_generated)

    @property
    def n_uncomputed(self) -> int:
        return len(self.token_ids) - self.n_computed

    @property
    def prefilling(self) -> bool:
        """More than the newest token, and those that go with it, still have to be computed."""
        return len(self.token_ids) - self.n_computed > 1 + self.n_behind

    @property
    def reads_logprobs(self) -> bool:
        """Logprobs of the prompt are still wanted."""
        return self.n_scored < self.n_prompt - 1

    @property
    def reusable(self) -> list[int]:
        """Keys of what may come from the cache, and of the token after it: rows that are told of are computed."""
        if self.request.take_hidden is not None:
            return self.keys[:1]
        return self.keys[: self.n_scored + 1] if self.reads_logprobs else self.keys

    @property
    def has_spans(self) -> bool:
        """Whether it has an image that one step computes whole."""
        return self.images is not None and self.images.has_spans

    def whole(self, n: int, most: int) -> int:
        """About `n` of the next tokens, and at most `most`, that may be computed in one step; 0: none may."""
        return n if self.images is None else self.images.whole(self.n_computed, n, most)

    def scored(self, n: int) -> range:
        """Positions among the next `n` tokens to be computed after which logprobs are wanted."""
        stop = self.n_computed + n
        return range(
            max(self.n_computed, self.n_scored),
            stop if self.request.logprobs is not None else min(stop, self.n_prompt - 1),
        )

    def admit(self, cache: SequenceCache) -> None:
        """Start, or start again, from what is cached."""
        self.cache, self.n_computed = cache, cache.reuse.start
        self.figures.encode_seconds = 0.0 if self.encoding is None else self.encoding.seconds
        if not self.admitted:
            why = WHY_READ if self.reads_logprobs else self.request.rewritten
            self.figures.count_reuse(cache, self.restore, why)
        self.admitted = True

    def append(self, token_id: int, now: float) -> None:
        """Take the newly chosen token, or end on it."""
        self.figures.token_times.append(now)
        if token_id in self.request.stop_ids:
            self.stop_reason = "stop"
            return
        self.token_ids.append(token_id)
        if self.keys is not self.token_ids:
            self.keys.append(token_id)
        self.seen.add(token_id)
        self.counts.add(token_id)
        if not self.loop_period and self.n_generated % CHECK_TOKENS == 0:
            self.loop_period = loop_period(self.token_ids[self.n_prompt :])
            if self.loop_period and self.request.stop_on_loop:
                self.stop_reason = "loop"
        if self.n_generated >= self.request.max_tokens:
            self.stop_reason = self.stop_reason or "length"
