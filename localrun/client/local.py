"""An engine in this process."""

import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from localrun.base.check import MAX_BIAS, check_request
from localrun.base.errors import UsageError, prompt_too_long
from localrun.base.events import Accepted, Completion, Done, Event, ModelInfo
from localrun.base.file_use import FileUse
from localrun.base.image_ids import without_images
from localrun.base.machine import peak_rss
from localrun.base.request import LoadOptions, ProgressCallback, Request
from localrun.base.views import CacheView, GroupView, KVBytes, MemoryPart, PromptView
from localrun.cache.groups import Group
from localrun.client.interface import Generation
from localrun.client.interference import InterferenceWatch
from localrun.client.rewritten_history import rewritten_history
from localrun.engine.answer import AnswerStream, completion, stream_answer
from localrun.engine.constrained import Constrained
from localrun.engine.constraints import Held
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.handle import GenerationHandle
from localrun.engine.image_encoder import NO_IMAGES, SeenImages
from localrun.engine.images import RequestImages
from localrun.engine.load import LoadedModel, load
from localrun.engine.sampler import MAX_SEED, SamplerSettings, resolve_settings
from localrun.fit.machine_rates import learn
from localrun.storage.mapped_files import DamagedWeightsError
from localrun.text.model_text import PromptIds

if TYPE_CHECKING:
    import numpy as np

    from localrun.diagnose.explain.topic_report import TopicReport


class LocalClient:
    """One loaded model. One without references is closed.

    Where packed weights were damaged on the disk, the next request has the model loaded again, and them packed.
    """

    def __init__(self, options: LoadOptions, progress: ProgressCallback = lambda done, total: None) -> None:
        self._options: LoadOptions | None = options
        self._lock = threading.Lock()  # held while it is loaded again
        self._at_step_end: Callable[[], None] = lambda: None
        self._note = ""  # goes with the next answer
        self._shown_notes: set[str] = set()  # notes of the disk cache that an answer already carried
        self._load(progress)

    def _load(self, progress: ProgressCallback = lambda done, total: None) -> None:
        assert self._options is not None
        self._use: FileUse | None = FileUse(self._options.path)
        self.model: LoadedModel = load(self._options, progress)
        self.model.engine.runner.at_step_end = self._at_step_end
        self._warming: GenerationHandle | None = None
        self._closing = weakref.finalize(self, self.model.close)

    @classmethod
    def over(cls, model: LoadedModel) -> "LocalClient":
        """A client of a model that is loaded already and that its loader closes."""
        client = cls.__new__(cls)
        client.model, client._warming, client._options, client._note, client._shown_notes = model, None, None, "", set()
        client._use = None
        return client

    def watch_steps(self, at_end: Callable[[], None]) -> None:
        """Have the engine's thread call `at_end` where each step ends, before it chooses tokens."""
        self._at_step_end = self.model.engine.runner.at_step_end = at_end

    @property
    def info(self) -> ModelInfo:
        return self.model.info

    def generate(self, request: Request) -> Generation:
        """Answer a request, from the first event on. An error in it, such as too long a prompt, raises at once."""
        check_request(request)
        deadline = None if request.deadline is None else time.perf_counter() + request.deadline
        text, seen = self.model.text, self._see(request)
        prompt = text.prepare(request, self._room(request), seen.known)
        generation = replace(self._generation(request, prompt, deadline), images=seen.sources)
        if (held := self._held(request)) is not None:
            generation, prompt = self._constrained(generation, request, prompt, held)
        handle = self._accept(generation)
        is_single = held is None and not request.parallel_tool_calls  # else the constraint sees to it
        answer = AnswerStream(self.model.constraints.parser(held, request, prompt.ids), text.stops(request), is_single)
        events = self._events(request, prompt, seen, handle, answer)
        return Generation(events, handle.cancel, handle.raise_priority)

    def hidden(self, text: str | Sequence[int]) -> "np.ndarray":
        """Hidden rows of a text, or of token ids, after the last norm: f32 [n_tokens, hidden]. Raises UsageError."""
        import numpy as np

        rows = list[np.ndarray]()
        token_ids = self.model.text.tokenizer.encode(text, bos=True) if isinstance(text, str) else text
        settings = SamplerSettings(temperature=0.0)
        request = GenerationRequest(
            tuple(token_ids), 0, frozenset(), settings, seed=0, priority="api", take_hidden=rows.append
        )
        handle = self._accept(request)
        handle.start()
        for _ in handle:
            pass
        found = np.concatenate(rows)
        return found[-len(token_ids) :]

    def _see(self, request: Request) -> SeenImages:
        """The images of a request, planned. Raises UsageError where the model sees none."""
        if not request.images:
            return NO_IMAGES
        if self.model.images is None:
            raise UsageError(f"{self.info.name} sees no images", self.model.why_blind)
        return self.model.images.see(request.images, request.chat_id)

    def _held(self, request: Request) -> Held | None:
        """Grammar that the answer is held to; None for none."""
        if request.constraint is None and self.model.text.tools(request) is None:
            return None
        from localrun.engine.call_constraints import held_to

        return held_to(self.model.constraints, request)

    def _constrained(
        self, generation: GenerationRequest, request: Request, prompt: PromptIds, held: Held
    ) -> tuple[GenerationRequest, PromptIds]:
        """Add what the answer is held to, and notes of what it is not held to."""

        def begin(wake: Callable[[], None]) -> Constrained:
            return self.model.constraints.begin(held, request, prompt.ids, wake)  # it may be loaded again by then

        return replace(generation, begin_constraint=begin), replace(prompt, notes=(*prompt.notes, *held.notes))

    def _room(self, request: Request) -> int:
        """Tokens of the context that a prompt may have at most; 0 for any."""
        return 0 if request.overflow == "roll" else self._ctx(request)

    def _ctx(self, request: Request) -> int:
        """Tokens of the context that a request may fill."""
        return min(self.info.ctx, request.ctx or self.info.ctx)

    def warm(self, token_ids: list[int], chat: str = "", images: RequestImages | None = None) -> None:
        """Compute a prompt in the background, unless a later call or a request does so first."""
        if self._warming is not None:
            self._warming.cancel()
        self._warming = self.model.engine.warm(token_ids, chat, images)

    def preview(self, request: Request, pieces: bool = False) -> PromptView:
        """How a request would be tokenized and cached, without computing it. Raises PromptTooLongError for one
        that is far too long."""
        check_request(request)
        text = self.model.text
        ids = text.prepare(request, self._room(request), self._see(request).known).ids
        images = () if self.model.images is None else tuple(map(self.model.images.view, request.images))
        view = PromptView(len(ids), self.model.engine.n_known(ids), images=images)
        if not pieces:
            return view
        tokens = ids if text.image_tokens is None else without_images(ids, text.image_tokens.placeholder)
        shown = tuple(text.tokenizer.piece_text(i) for i in tokens)
        return replace(view, ids=tuple(tokens), pieces=shown, text=text.tokenizer.decode(tokens, special=True))

    def view(self) -> CacheView:
        """Contents of the KV cache now; of the latest sequence, block by block."""
        engine, plan = self.model.engine, self.model.plan
        held = engine.view()
        groups = zip(engine.runner.groups, held.states, strict=True)
        return CacheView(
            n_tokens=held.n_tokens,
            ctx=plan.ctx,
            block_tokens=engine.store.block_tokens,
            groups=tuple(self._group(number, *group) for number, group in enumerate(groups)),
            used_blocks=held.used_blocks,
            total_blocks=held.total_blocks,
            tree_tokens=held.tree_tokens,
            disk_bytes=0 if engine.disk is None else engine.disk.writer.nbytes,
            memory=(
                *self.model.memory(held),
                MemoryPart("whole process", plan.peak_bytes + plan.mapped_bytes, self.model.backend.peak_bytes()),
            ),
            kv=KVBytes(held.chat_bytes, max(0, held.used_bytes - held.chat_bytes), plan.kv_bytes),
        )

    def explain(self, topic: str, watch: Callable[[int], None] = lambda steps: None) -> "TopicReport":
        """Measure a topic beside what is cached. `watch` is called after every step; an exception from it cancels."""
        from localrun.client.measure import measure

        return measure(self.model, topic, watch, LocalClient.over)

    def close(self) -> None:
        self.model.close()
        if self._use is not None:
            self._use.end()

    def __enter__(self) -> "LocalClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self, generation: GenerationRequest) -> GenerationHandle:
        """A generation to start, with the model loaded again if need be."""
        model = self.model
        try:
            return model.engine.accept(generation)
        except DamagedWeightsError as error:
            if self._options is None:
                raise
            damage = error.message
        with self._lock:
            if self.model is model:  # no other thread has loaded one since
                model.close()
                self._closing.detach()
                self._load()
                self._note = f"{damage} and packed again"
        return self.model.engine.accept(generation)

    def _events(
        self, request: Request, prompt: PromptIds, seen: SeenImages, handle: GenerationHandle, answer: AnswerStream
    ) -> Iterator[Event]:
        yield Accepted(len(prompt.ids))  # before the engine has all processors, for which who passes it on would wait
        handle.start()
        watch: InterferenceWatch | None = None
        for event in stream_answer(handle, answer):
            watch = watch or InterferenceWatch()  # it asks the system a dozen things, while the engine computes
            if isinstance(event, GenerationState):
                figures = completion(event, answer, self.info, prompt, self.model.plan.kv_bytes, peak_rss())
                learn(figures, self.model.backend)
                figures = replace(self._with_notes(figures), meanwhile=watch.meanwhile(event.figures, prompt.changed))
                if figures.stop_string not in request.stop:  # the template's own
                    figures = replace(figures, stop_string="")
                yield Done(figures, tuple(prompt.ids))
                held = [*prompt.ids, *event.token_ids[event.n_prompt :]]
                # After calls come results, which are not known yet.
                again = not figures.tool_calls and rewritten_history(
                    self.model.text, request, figures.text, figures.thinking, held, seen.known
                )
                if again:
                    self.warm(again, request.chat_id, seen.sources)
            else:
                yield event

    def _with_notes(self, figures: Completion) -> Completion:
        """Add notes of what is on disk since the last answer."""
        told = [one.notes for one in (self.model.engine.disk, self.model.images) if one is not None]
        notes = [note for part in told for note in part if note not in self._shown_notes]
        self._shown_notes.update(notes)
        news, self._note = [figures.cache.cache_note, *notes, self._note], ""
        return replace(figures, cache=replace(figures.cache, cache_note="; ".join(note for note in news if note)))

    def _forbidden(self, request: Request) -> dict[int, float]:
        """A bias against calls of tools that the prompt names but that must not be called."""
        tools = self.model.text.tools(request)
        return dict.fromkeys(tools.forbidden_ids if tools else (), -MAX_BIAS)

    def _generation(self, request: Request, prompt: PromptIds, deadline: float | None) -> GenerationRequest:
        rolls = request.overflow == "roll"
        ctx, n_prompt = self._ctx(request), len(prompt.ids)
        if n_prompt >= ctx and not rolls:
            raise prompt_too_long(f"{n_prompt:,} tokens", ctx, n_prompt)
        room = self.info.ctx if rolls else ctx - n_prompt
        seed = request.sampling.seed
        return GenerationRequest(
            prompt=tuple(prompt.ids),
            max_tokens=room if request.max_tokens is None else min(request.max_tokens, room),
            stop_ids=self.model.text.tokenizer.eog_ids,
            settings=resolve_settings(request.sampling, self.model.text.sampling),
            seed=secrets.randbelow(MAX_SEED) if seed is None else seed,
            logit_bias={**request.sampling.logit_bias, **self._forbidden(request)},
            rolls=rolls,
            stop_on_loop=request.stop_on_loop,
            logprobs=request.logprobs,
            prompt_logprobs=request.prompt_logprobs,
            chat=request.chat_id,
            rewritten=prompt.note,
            priority=request.priority,
            deadline=deadline,
        )

    def _group(self, number: int, group: Group, states: str) -> GroupView:
        hides = group.window is not None and group.window + group.block_tokens < self.info.ctx
        window = group.window if hides else None
        sight = "" if window is None else f", window {window:,}" + (" and the first block" if group.sink else "")
        kept = group.kind.title and f", {group.kind.title}"
        return GroupView(
            name=f"{len(group.layers)} layers{kept}{sight}",
            n_layers=len(group.layers),
            window=window,
            codec=group.codec.name,
            block_bytes=self.model.engine.runner.executor.block_bytes(number),
            states=states,
        )
