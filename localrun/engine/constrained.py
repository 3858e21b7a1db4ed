"""Constraint of one generation: which tokens may come next, and which must."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING

import numpy as np

from localrun.base.errors import ConstraintError
from localrun.ops.interface import Logits
from localrun.ops.sampling import Draw, is_allowed
from localrun.text.answer_start import AnswerStart, PromptStart, TriggeredStart

if TYPE_CHECKING:
    from llguidance import LLMatcher

    from localrun.engine.grammar_tokens import GrammarTokens

LONGEST_REASON = 300  # characters
SOON_SECONDS = 0.002  # that the other answers of a step may wait for the mask after a drafted token


class Constrained:
    """The constraint of one generation; the engine reports every token by `take`.

    A thread of the pool computes what may follow. A generation is free until its answer begins, except that an answer
    may be required. From there on the grammar says which tokens may come next. Tokens without an alternative are
    `forced`: they are known without logits.
    """

    def __init__(
        self,
        matcher: "LLMatcher",
        start: AnswerStart | TriggeredStart | PromptStart,
        tokens: "GrammarTokens",
        pool: Executor,
        wake: Callable[[], None],
        *,
        skips: bool = True,
    ) -> None:
        """Start before the answer.

        The pool calls `wake` when a token can be chosen after `can_choose` was False. `skips`: forced tokens are taken
        as soon as they are known, else one per step.
        """
        self._matcher, self._start, self._tokens = matcher, start, tokens
        self._pool, self._wake = pool, wake
        self.skips = skips
        self._forced: deque[int] = deque()
        self._mask: np.ndarray | None = None if start.may_end else tokens.no_ends  # of tokens that may be next
        self._offered: np.ndarray | None = None  # tokens that may come instead, once, and that no grammar sees
        self._is_free = True
        self._is_known = threading.Event()  # what is forced is known
        self._is_known.set()
        self._is_done = threading.Event()  # so is the mask
        self._is_done.set()
        self._is_awaited = False
        self._error: Exception | None = None
        self._follow_start()

    @property
    def forced(self) -> int | None:
        """The next token where the grammar allows only one, as far as that is known."""
        return self._forced[0] if self._is_known.is_set() and self._forced else None

    def wait(self, seconds: float) -> None:
        """Wait for the forced tokens, `seconds` at most."""
        self._is_known.wait(seconds)

    @property
    def restricts(self) -> bool:
        """Whether some tokens are excluded."""
        return self._mask is not None or not self._is_free or bool(self._forced)

    def can_choose(self) -> bool:
        """Whether the next token can be chosen from logits now.

        If not, one is `forced`, or `wake` will be called.
        """
        self._is_awaited = self.forced is None  # before the look: it may be done right after
        if self._is_awaited and not self._is_done.is_set():
            return False
        self._is_awaited = False
        return self.forced is None or not self.skips

    def can_choose_soon(self) -> bool:
        """Whether the next token can be chosen now or in a moment, forced or not; else `wake` will be called."""
        if self.forced is None:
            self._is_done.wait(SOON_SECONDS)
        return self.forced is not None or self.can_choose()

    def choose(self, logits: Logits, draw: Draw) -> int:
        """Choose the next token. Raises ConstraintError where the grammar takes too much computing."""
        if self._error is not None:
            raise self._error
        if self._forced:
            return self._forced[0]
        assert self._mask is not None
        return logits.choose_allowed(draw, self._mask if self._offered is None else self._mask | self._offered)

    def take(self, token_id: int) -> None:
        """Advance by the token that was taken."""
        if self._forced:
            self._forced.popleft()
            if self._is_free:
                self._push(token_id)
        elif self._is_free:
            self._push(token_id)
        elif self._offered is None or self._is_of_grammar(token_id):
            self._advance(token_id)
        elif token_id in self._start.opening:
            self._is_free, self._mask = True, self._tokens.no_ends
            self._forced.extend(self._start.opening[1:])
            self._push(token_id)
        else:
            self._advance(None)

    def _is_of_grammar(self, token_id: int) -> bool:
        assert self._mask is not None
        return bool(is_allowed(self._mask, np.array([token_id]))[0])

    def _push(self, token_id: int) -> None:
        self._start.push(token_id)
        self._follow_start()

    def _follow_start(self) -> None:
        """Begin with the grammar where the answer has begun."""
        if not self._start.has_begun:
            return
        self._is_free = False
        if self._start.trigger is not None:
            self._advance(self._start.trigger)
            return
        offered = self._tokens.line_ends if self._start.is_after_thought else None
        if self._start.opening:
            offered = self._tokens.mask(self._start.opening[:1])
        self._advance(None, offered)

    def _advance(self, token_id: int | None, offered: np.ndarray | None = None) -> None:
        """Let the pool compute what may follow a token."""
        self._is_known.clear()
        self._is_done.clear()
        self._mask, self._offered = None, offered
        self._pool.submit(self._find_out, token_id)

    def _find_out(self, token_id: int | None) -> None:
        matcher = self._matcher
        try:
            if token_id is not None:
                matcher.consume_token(token_id)
            forced = [] if self._offered is not None else matcher.compute_ff_tokens()
            if forced:
                matcher.consume_tokens(forced)
            has_ended = matcher.is_stopped() and not matcher.is_error()
            self._forced.extend([*forced, self._tokens.end_id] if has_ended else forced)
            self._is_known.set()
            if not has_ended:
                self._mask = np.frombuffer(matcher.compute_bitmask(), np.uint8)
            if matcher.is_error():
                self._error = too_complex(matcher)
            elif self._mask is not None and not self._mask.any():
                what = "no token of this model goes on with the answer"
                self._error = ConstraintError(what, "change the constraint")
        except Exception as error:  # it is the end of this generation, told where its next token is chosen
            self._error = error
        finally:
            self._is_known.set()
            self._is_done.set()
            if self._is_awaited:
                self._wake()


def too_complex(matcher: "LLMatcher") -> ConstraintError:
    """The error of a matcher that has stopped."""
    what = f"the answer's constraint takes too much computing: {reason_of(matcher)}"
    return ConstraintError(what, "make the schema or grammar simpler")


def reason_of(matcher: "LLMatcher") -> str:
    """The error of a matcher on one line."""
    said = " ".join(matcher.get_error().replace("<non-verbose/>", "").split())
    return said if len(said) <= LONGEST_REASON else said[:LONGEST_REASON] + "…"
