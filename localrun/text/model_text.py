"""The text side of an opened model: tokenizer, chat template, reasoning tags, and its generation settings."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from localrun.base.check import check_ids
from localrun.base.content import with_files_as_text
from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError, UsageError, prompt_too_long
from localrun.base.events import Channel
from localrun.base.request import Request, Sampling
from localrun.formats.chat_templates import OWN_FILE
from localrun.formats.json_files import left_out
from localrun.text.answer_parser import AnswerParser
from localrun.text.answer_start import AnswerStart, UpToAnswer
from localrun.text.detokenizer import text_of
from localrun.text.fewest_tokens import fewest_tokens
from localrun.text.history import change, note, splice, with_spaces
from localrun.text.image_tokens import (
    ImageTokens,
    KnownImages,
    PromptImage,
    as_template_parts,
    placed_images,
    with_rows,
)
from localrun.text.marks import NO_MARKS, Marks
from localrun.text.message_order import Arranged, arrange, has_calls
from localrun.text.prompt import RenderedChat, encode_rendered, render_chat
from localrun.text.reasoning import ReasoningSplitter, ReasoningTags, Splitter
from localrun.text.template import RAW_HINT, ChatTemplate
from localrun.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from localrun.text.tool_calls.request_tools import RequestTools

NO_IMAGES: KnownImages = MappingProxyType({})
TAIL_TOKENS = 32  # of a prompt, where a template opens a thought for the model


@dataclass(frozen=True, slots=True)
class PromptIds:
    """A prompt. The first `n_kept` ids were known to the request; `note` says why no more were. Times in ms.

    `changed`: the first id that differs from the known ones, and its turn (0: before the first); None where none does.
    """

    ids: list[int]
    n_kept: int
    note: str
    render_ms: float
    tokenize_ms: float
    changed: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()  # about the request, for the user


@dataclass(frozen=True, slots=True)
class ModelText:
    """Tokenizer and template of a model: turns requests into ids. `file_notes` are for the user."""

    tokenizer: Tokenizer
    template: ChatTemplate
    tags: ReasoningTags | None
    sampling: Sampling
    file_notes: tuple[str, ...]
    image_tokens: ImageTokens | None = field(default=None, kw_only=True)  # of a model that sees
    marks: Marks = field(init=False)  # the tokens among the tags

    def __post_init__(self) -> None:
        marks = Marks.of(self.tokenizer, self.tags.texts) if self.tags else NO_MARKS
        object.__setattr__(self, "marks", marks)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the files for the user. Reads the chat template if there is another to replace it."""
        spared = self.template.spare is not None and self.template.problem
        return (*self.file_notes, left_out(f"{OWN_FILE}: {spared}")) if spared else self.file_notes

    def prepare(self, request: Request, ctx: int = 0, images: KnownImages = NO_IMAGES) -> PromptIds:
        """The ids of a request: `known_ids` stay where the chat continues them. `images`: those of its messages, by
        their keys.

        Raises PromptTooLongError before encoding a text that cannot fit a context of `ctx` tokens; 0 for any.
        """
        if request.prompt_ids:
            check_ids(request.prompt_ids, self.tokenizer.vocab_size)
            return PromptIds(list(request.prompt_ids), 0, "", 0.0, 0.0)
        if request.prompt is not None:
            self._check_size(request.prompt, ctx)
            started = time.perf_counter()
            ids = self.tokenizer.encode(request.prompt, special=True, bos=request.add_bos)
            return PromptIds(ids, 0, "", 0.0, _ms_since(started))
        if not request.messages:
            raise UsageError("there is nothing to answer", "give a prompt or at least one message")
        return self._begun(request, ctx, images) if request.continues else self._asked(request, ctx, images)

    def _asked(self, request: Request, ctx: int, images: KnownImages) -> PromptIds:
        """The ids of messages that an answer follows."""
        arranged = self._arranged(request)
        messages, notes = arranged.messages, arranged.notes
        placed = self._placed(messages, images)
        rendered, render_ms = self._render(request, messages)
        self._check_size(rendered.text, ctx)
        started = time.perf_counter()
        encoded = self._encode(rendered, placed)
        if not request.known_ids:
            return PromptIds(encoded, 0, "", render_ms, _ms_since(started), notes=notes)
        spliced = splice(self.tokenizer, request.known_ids, encoded)
        if spliced.rewritten_at is not None and self.tokenizer.vocabulary.answers_after_space:
            spaced = with_spaces(self.tokenizer, request.known_ids, messages)
            rendered, more_ms = self._render(request, spaced)
            render_ms += more_ms
            other = splice(self.tokenizer, request.known_ids, self._encode(rendered, placed))
            spliced = max(spliced, other, key=lambda one: one.n_kept)
        changed = change(self.tokenizer, spliced, messages)
        why = "" if changed is None else note(*changed)
        return PromptIds(spliced.ids, spliced.n_kept, why, render_ms, _ms_since(started), changed, notes)

    def stops(self, request: Request) -> tuple[str, ...]:
        """Texts that end an answer: those of the request, and those of the template where that shapes it."""
        if request.prompt is not None or request.prompt_ids:
            return request.stop
        return (*request.stop, *self.template.chosen(bool(request.tools)).stops)

    def _encode(self, rendered: RenderedChat, images: Sequence[PromptImage]) -> list[int]:
        """The ids of a rendered chat, with the rows of its images."""
        ids = encode_rendered(self.tokenizer, rendered)
        return with_rows(ids, images, self.image_tokens) if images and self.image_tokens is not None else ids

    def _placed(self, messages: Sequence[Mapping[str, Any]], known: KnownImages) -> Sequence[PromptImage]:
        """The images of messages, in their order. Raises UsageError for a model that sees none."""
        placed = placed_images(messages, known)
        if placed and self.image_tokens is None:
            raise UsageError("the model sees no images", "choose a model that does, or leave the images out")
        return placed

    def _arranged(self, request: Request) -> Arranged:
        """The messages in an order that the template accepts, with files written into their texts."""
        template, tools = self.template.chosen(bool(request.tools)), self.tools(request)
        messages: Sequence[Mapping[str, Any]] = [with_files_as_text(message) for message in request.messages]
        if tools is None:
            return arrange(template, messages)
        arranged = arrange(template, tools.shown(tools.told(messages)))
        return replace(arranged, notes=(*arranged.notes, *tools.notes))

    def _check_size(self, text: str, ctx: int) -> None:
        if ctx and (fewest := fewest_tokens(self.tokenizer, text, ctx)):
            raise prompt_too_long(f"{fewest:,} tokens or more", ctx)

    def _render(self, request: Request, messages: Sequence[Mapping[str, Any]]) -> tuple[RenderedChat, float]:
        """The text of a chat, and the milliseconds that rendering took."""
        started = time.perf_counter()
        tools = self.tools(request)
        rendered = render_chat(
            self.tokenizer,
            self.template.at(request.now).chosen(bool(request.tools)),
            [as_template_parts(message) for message in messages],
            tags=(*self.tags.texts, *self.marks.by_text) if self.tags else (),
            calls=tools.form.dialect.syntax if tools else None,
            **self.thinking(request),
            **(tools.variables if tools else {}),
        )
        if not rendered.text:
            what = "the chat template writes nothing for these messages"
            raise ModelFileError("BAD_TEMPLATE", what, hint=RAW_HINT)
        return rendered, _ms_since(started)

    def thinking(self, request: Request) -> dict[str, Any]:
        """Variables of the template for thinking, as requested; none without a switch or a wish."""
        if request.think == "auto":
            return {}
        return self.template.chosen(bool(request.tools)).capabilities.thinking_arguments(request.think == "on")

    def tools(self, request: Request) -> "RequestTools | None":
        """The tools of a request; None where it has none, and none were called."""
        if not request.messages or not (request.tools or has_calls(request.messages)):
            return None
        from localrun.text.tool_calls.request_tools import RequestTools

        return RequestTools.of(request, self.template.chosen(bool(request.tools)), self.tokenizer)

    def parser(
        self, request: Request, prompt: Sequence[int], is_held: Callable[[str], bool] = lambda call: True
    ) -> AnswerParser:
        """Parser of the answer to `request`; the end of `prompt` shows whether it begins within a thought.

        `is_held` says of the text of a call whether it holds to what the request's calls are held to.
        """
        tools = self.tools(request)
        calls = tools is not None and tools.may_call
        marks = tools.marks(self.tags.texts if self.tags else ()) if tools and calls else self.marks
        splitter = self._splitter(request, prompt, marks)
        is_chat = bool(request.messages) and not request.verbatim
        strips_space = is_chat and begun_channel(request) != "answer" and self.tokenizer.vocabulary.answers_after_space
        if request.constraint is not None and not (tools and tools.must_call):
            return AnswerParser(self.tokenizer, marks, splitter and UpToAnswer(splitter), strips_space=False)
        reader = tools.parser(prompt, splitter, marks, is_held) if tools and calls else splitter
        return AnswerParser(self.tokenizer, marks, reader, strips_space)

    def answer_start(self, request: Request, prompt: Sequence[int], triggers: Sequence[int] = ()) -> AnswerStart:
        """Finder of the start of the constraint on the answer to `prompt`, at one of `triggers` at the latest."""
        splitter = self._splitter(request, prompt, self.marks)
        opening: list[int] = []
        if isinstance(splitter, ReasoningSplitter) and splitter.in_answer and request.think != "off":
            assert self.tags is not None
            opening = self.tokenizer.encode(self.tags.open, special=True)
        is_told = opening and opening[0] in self.special_ids and begun_channel(request) is None
        return AnswerStart(self.tokenizer, self.marks, splitter, opening if is_told else (), triggers)

    @property
    def special_ids(self) -> frozenset[int]:
        """Tokens that are never text of an answer: control tokens, and those of tags and marks of calls."""
        from localrun.text.tool_calls.request_tools import call_marks

        calls = call_marks(self.template.chosen(True), self.tokenizer)
        return self.tokenizer.control_ids | self.marks.by_id.keys() | calls.by_id.keys()

    def _splitter(self, request: Request, prompt: Sequence[int], marks: Marks) -> Splitter | None:
        if self.tags is None or request.verbatim:
            return None
        channel = begun_channel(request)
        return self.tags.splitter(
            text_of(self.tokenizer, prompt[-TAIL_TOKENS:], marks),
            inside=self._opens_thought(prompt) if channel is None else channel == "thinking",
            goes_on=channel is not None,
            marks=marks,
        )

    def _opens_thought(self, prompt: Sequence[int]) -> bool:
        """Whether a prompt ends with the tag that opens the thinking, so that the model continues it."""
        if self.tags is None:
            return False
        tag = self._end_of(self.tokenizer.encode(self.tags.open, special=True))
        return self._end_of(prompt).rstrip().endswith(tag.strip())

    def _end_of(self, ids: Sequence[int]) -> str:
        return text_of(self.tokenizer, ids[-TAIL_TOKENS:], self.marks)

    def _begun(self, request: Request, ctx: int, images: KnownImages) -> PromptIds:
        """The ids of a continued answer: as the engine had them, else of the prompt and its text."""
        if request.known_ids:
            return PromptIds(list(request.known_ids), len(request.known_ids), "", 0.0, 0.0)
        begun = str(request.messages[-1].get("content") or "")
        self._check_size(begun, ctx)
        prompt = self.prepare(replace(request, messages=request.messages[:-1], continues=False), ctx, images)
        closed = []
        if self.tags is not None and self._opens_thought(prompt.ids):
            closed = self.tokenizer.encode(f"{self.tags.close}\n\n", special=True)
        return replace(prompt, ids=[*prompt.ids, *closed, *self.tokenizer.encode(begun)])


def begun_channel(request: Request) -> Channel | None:
    """The channel in which a continued answer was cut; None where it starts over, as thoughts without ids do."""
    begun = request.messages[-1] if request.continues else {}
    if begun.get("content"):
        return "answer"
    return "thinking" if begun.get("reasoning_content") and request.known_ids else None


def _ms_since(started: float) -> float:
    return 1000 * (time.perf_counter() - started)
