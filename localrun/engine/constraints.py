"""Constraints on a model's answers, compiled by llguidance into grammars that say which tokens may come next.

The library, and the vocabulary in its form, are loaded by the first constraint: for a large vocabulary that takes a
second and 75 MB.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, cast

from localrun.base.constraint import JSON_STYLE, Constraint
from localrun.base.dataclass import dataclass
from localrun.base.errors import ConstraintError
from localrun.base.request import Request
from localrun.engine.constrained import Constrained, reason_of
from localrun.text.answer_parser import AnswerParser
from localrun.text.model_text import ModelText, begun_channel

if TYPE_CHECKING:
    from llguidance import LLMatcher
    from llguidance._lib import JsonCompileOptions

    from localrun.engine.grammar_tokens import GrammarTokens
    from localrun.text.tool_calls.held_calls import HeldCalls

KEPT = 64  # compiled grammars
THREADS = 2  # that compute masks: one that takes long leaves the other to the rest
COMPILE_SECONDS = 20.0
STACK_BYTES = 256 << 20  # of the thread that compiles, which follows references by recursion
INITIAL_FUEL, STEP_FUEL = 1_000_000, 200_000  # for a lexer: 20 ms each
MOST_ITEMS = 20_000  # of a token, in a parser: a ms
MOST_LEXER_STATES, MOST_SYMBOLS = 50_000, 200_000


@dataclass(frozen=True, slots=True)
class Grammar:
    """A compiled constraint."""

    name: str
    matcher: "LLMatcher"  # at its beginning: whoever uses it takes a copy
    warnings: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about parts of the constraint that are not enforced."""
        return tuple(f"the answer is not held to all of the {self.name}: {warning}" for warning in self.warnings)


@dataclass(frozen=True, slots=True)
class Held:
    """The grammar of an answer, or of its calls. `notes` say what is not enforced."""

    grammar: Grammar
    notes: tuple[str, ...]
    calls: "HeldCalls | None" = None


class Constraints:
    """Compiled constraints of one model. Safe to share between threads."""

    def __init__(self, text: ModelText, n_logits: int) -> None:
        """Compile nothing yet. `n_logits`: length of a row of logits, with padding."""
        self.text, self.n_logits = text, n_logits
        self._grammars: OrderedDict[Constraint, Grammar] = OrderedDict()
        self._lock = threading.Lock()
        self._compiling = threading.Lock()
        self._pool = ThreadPoolExecutor(THREADS, "localrun-constraints")  # starts a thread when there is work for it

    def compile(self, constraint: Constraint) -> Grammar:
        """Compile a constraint. Raises ConstraintError, with the reason, for one that cannot be enforced."""
        grammar = self._grammars.get(constraint) or self._compile_aside(constraint)
        with self._lock:
            self._grammars[constraint] = grammar
            self._grammars.move_to_end(constraint)
            if len(self._grammars) > KEPT:
                self._grammars.popitem(last=False)
        return grammar

    def begin(self, held: Held, request: Request, prompt: Sequence[int], wake: Callable[[], None]) -> Constrained:
        """Start the constraint on the answer to a request with this prompt. `wake` is that of Constrained."""
        matcher = held.grammar.matcher.deep_copy()
        if held.calls is None and begun_channel(request) == "answer":
            self._go_on(matcher, str(request.messages[-1]["content"]))
        triggers = () if held.calls is None else held.calls.triggers
        start = (held.calls and held.calls.start) or self.text.answer_start(request, prompt, triggers)
        return Constrained(matcher, start, self._tokens, self._pool, wake, skips=request.logprobs is None)

    def parser(self, held: Held | None, request: Request, prompt: Sequence[int]) -> AnswerParser:
        """Parser of the answer to a request with this prompt. Calls hold to `held` even where they have no marks."""
        if held is None or held.calls is None:
            return self.text.parser(request, prompt)

        def is_held(call: str) -> bool:
            ids, matcher = self.text.tokenizer.encode(call, special=True), held.grammar.matcher.deep_copy()
            return matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting()

        return self.text.parser(request, prompt, is_held)

    def _go_on(self, matcher: "LLMatcher", begun: str) -> None:
        """Take the text of a cut answer. Raises ConstraintError for text that no answer begins with."""
        ids = self._tokens(begun.encode())
        if matcher.try_consume_tokens(ids) < len(ids):
            raise ConstraintError("the answer so far does not hold to its constraint", "leave one of them out")

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @cached_property
    def _tokens(self) -> "GrammarTokens":
        from localrun.engine.grammar_tokens import GrammarTokens

        return GrammarTokens(self.text.tokenizer, self.text.special_ids, self.n_logits)

    def _compile_aside(self, constraint: Constraint) -> Grammar:
        """Compile on a thread with room for deep recursion, one at a time; one that takes too long is abandoned."""
        done: Future[Grammar] = Future()

        def compile_it() -> None:
            try:
                done.set_result(self._compile(constraint))
            except BaseException as error:
                done.set_exception(error)
            finally:
                self._compiling.release()

        try:
            if not self._compiling.acquire(timeout=COMPILE_SECONDS):
                raise TimeoutError
            usual = threading.stack_size(STACK_BYTES)
            try:
                threading.Thread(target=compile_it, name="localrun-compile", daemon=True).start()
            finally:
                threading.stack_size(usual)
            return done.result(COMPILE_SECONDS)
        except TimeoutError:
            what = f"compiling the {constraint.name} takes more than {COMPILE_SECONDS:.0f} seconds"
            raise ConstraintError(what, "make it simpler") from None

    def _compile(self, constraint: Constraint) -> Grammar:
        from llguidance import LLMatcher, LLParserLimits

        what = f"answers cannot be held to this {constraint.name}"
        try:
            source = _grammar_source(constraint)
        except ValueError as error:
            raise ConstraintError(f"{what}: {error}", "correct it") from None
        limits = LLParserLimits(
            initial_lexer_fuel=INITIAL_FUEL,
            step_lexer_fuel=STEP_FUEL,
            step_max_items=MOST_ITEMS,
            max_lexer_states=MOST_LEXER_STATES,
            max_grammar_size=MOST_SYMBOLS,
            verbose_errors=False,
        )
        matcher = LLMatcher(self._tokens.tokenizer, source, log_level=0, limits=limits)
        first = matcher.deep_copy()
        if not first.is_error() and not first.is_stopped():
            first.compute_bitmask()  # one that nothing holds to is noticed here
        if first.is_error():
            raise ConstraintError(f"{what}: {reason_of(first)}", "leave that out, or say it in another way")
        return Grammar(constraint.name, matcher, tuple(matcher.get_grammar_warnings()))


def _grammar_source(constraint: Constraint) -> str:
    """A constraint in the syntax of llguidance. ValueError for unreadable JSON."""
    from llguidance import LLMatcher

    match constraint.kind:
        case "json_schema":
            return LLMatcher.grammar_from_json_schema(
                constraint.source,
                defaults=cast("JsonCompileOptions", JSON_STYLE),
                overrides={"lenient": constraint.is_lenient},
            )
        case "regex":
            return LLMatcher.grammar_from_regex(constraint.source)
        case "lark":
            return LLMatcher.grammar_from_lark(constraint.source)
