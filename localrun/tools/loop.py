"""An answer that calls tools: generate, run the calls, append the results, and generate again."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from localrun.base.content import CallPart, ResultPart
from localrun.base.errors import PromptTooLongError
from localrun.base.events import Channel, Completion, Done, Event, StopReason, Token, ToolCall
from localrun.base.request import Request
from localrun.base.tool_events import CallsMade, ToolDone, ToolStarted, TurnEvent
from localrun.chat.requests import APART, assistant_message, tool_message
from localrun.tools.arguments import check_arguments, parse_arguments
from localrun.tools.permissions import Permissions
from localrun.tools.run_tool import run_tool
from localrun.tools.running_call import RunningCall, ToolError, ToolResult
from localrun.tools.toolbox import Toolbox

MAX_GENERATIONS = 25  # of one answer; the last may call nothing
MAX_CALLS = 16  # of one generation
REFUSED = "the user did not allow this call"
STOPPED = "the call was stopped by the user"
CUT = "this call broke off and was not run"
TOO_MANY = f"this call was not run: {MAX_CALLS} calls at once are the most"
TOO_OFTEN = f"this call was not run: an answer has {MAX_GENERATIONS} rounds of calls at most"

CallAndResult: TypeAlias = tuple[CallPart, ResultPart]


class UnderWay(Protocol):
    """One running generation: its events, and a way to end it."""

    def __iter__(self) -> Iterator[Event]: ...

    def cancel(self) -> None: ...


class ToolLoop:
    """One answer with calls: iterate it for its events, the last of which is Done; `cancel` it from any thread.

    That Done has the whole text, and the figures of the last generation.
    """

    def __init__(
        self, generate: Callable[[Request], UnderWay], request: Request, toolbox: Toolbox, permissions: Permissions
    ) -> None:
        self._generate, self._request = generate, request
        self._toolbox, self._permissions = toolbox, permissions
        self._generation: UnderWay | None = None
        self._running: RunningCall | None = None
        self._is_cancelled = False
        self._said: dict[Channel, str] = {"answer": "", "thinking": ""}  # before this generation
        self._calls: tuple[ToolCall, ...] = ()
        self._notes: tuple[str, ...] = ()

    def cancel(self) -> None:
        """End the answer: a generation or a running tool is stopped, and the text so far stays."""
        self._is_cancelled = True
        for one in (self._generation, self._running):
            if one is not None:
                one.cancel()

    def __iter__(self) -> Iterator[TurnEvent]:
        request, done = self._request, None
        for left in reversed(range(MAX_GENERATIONS)):
            request = request if left else replace(request, tool_choice="none")
            try:
                done = yield from self._generated(request)
            except PromptTooLongError as error:
                if done is None:
                    raise
                self._notes += (f"the results of the tools do not fit: {error.message}",)
                yield self._whole(done, "length")
                return
            reason = done.completion.stop_reason
            if not done.completion.tool_calls:
                self._keep(done.completion)
                yield self._whole(done, reason)
                return
            exchanges = yield from self._called(done, CUT if reason != "stop" else "" if left else TOO_OFTEN)
            if self._is_cancelled or reason != "stop" or not left:
                yield self._whole(done, "cancelled" if self._is_cancelled else reason)
                return
            request = _next_request(request, done, exchanges)

    def _generated(self, request: Request) -> Generator[TurnEvent, None, Done]:
        """The events of one generation without its end, which is returned."""
        self._generation = generation = self._generate(request)
        if self._is_cancelled:  # before there was anything to cancel
            generation.cancel()
        for event in generation:
            if isinstance(event, Done):
                return event
            yield event
        raise AssertionError("a stream ends with Done or raises")

    def _called(self, done: Done, refusal: str) -> Generator[TurnEvent, None, list[CallAndResult]]:
        """Run the calls of a generation one after the other, unless `refusal` says why not; returns the results."""
        completion = done.completion
        self._keep(completion)
        texts: dict[Channel, str] = {"answer": completion.text, "thinking": completion.thinking}
        for channel, text in texts.items():
            if text:
                self._said[channel] += APART
                yield Token(None, APART, channel)
        calls = tuple(map(self._part, completion.tool_calls))
        yield CallsMade(done, calls)
        exchanges = []
        for number, call in enumerate(calls):
            if self._is_cancelled:
                result = ToolResult(STOPPED, is_error=True)
            elif refusal or not completion.tool_calls[number].is_complete:
                result = ToolResult(refusal or CUT, is_error=True)
            elif number >= MAX_CALLS:
                result = ToolResult(TOO_MANY, is_error=True)
            else:
                result = yield from self._result(call)
            part = ResultPart(
                call.id, call.name, result.text, result.is_error, result.seconds, result.bytes, result.cut
            )
            yield ToolDone(part)
            exchanges.append((call, part))
        return exchanges

    def _part(self, call: ToolCall) -> CallPart:
        tool = self._toolbox.find(call.name)
        return CallPart(call.id, call.name, call.arguments, tool.server if tool else "")

    def _result(self, call: CallPart) -> Generator[TurnEvent, None, ToolResult]:
        """The result of one call: an error where it cannot run, or is not allowed."""
        try:
            tool = self._toolbox.find(call.name)
            if tool is None:
                names = ", ".join(name for name, _ in self._toolbox)
                raise ToolError(f"there is no tool {call.name[:100]}; there are: {names}")
            arguments = parse_arguments(call.arguments)
            if not tool.server:
                arguments = check_arguments(tool.parameters, arguments)
            running = self._permissions.permit(call.name, tool, arguments)
            if running is None:
                raise ToolError(STOPPED if self._is_cancelled else REFUSED)
        except ToolError as error:
            return RunningCall().error(error)
        yield ToolStarted(call.id)
        self._running = running
        if self._is_cancelled:
            running.cancel()
        return run_tool(tool, arguments, running)

    def _keep(self, completion: Completion) -> None:
        """Add a generation to the whole answer."""
        self._said["answer"] += completion.text
        self._said["thinking"] += completion.thinking
        self._calls += completion.tool_calls
        self._notes += completion.notes

    def _whole(self, last: Done, reason: StopReason) -> Done:
        """The end of the answer: the figures of its last generation, with the whole text and all calls."""
        whole = replace(
            last.completion,
            text=self._said["answer"],
            thinking=self._said["thinking"],
            tool_calls=self._calls,
            notes=tuple(dict.fromkeys(self._notes)),
            stop_reason=reason,
        )
        return replace(last, completion=whole)


def _next_request(request: Request, done: Done, exchanges: Sequence[CallAndResult]) -> Request:
    """The request that gives the results to the model. Token ids of the engine stay unchanged."""
    c = done.completion
    said = assistant_message(c.text, c.thinking, [call for call, _ in exchanges])
    results = [tool_message(call, result.text) for call, result in exchanges]
    begun = request.messages[-1] if request.continues else None
    earlier = request.messages[:-1] if begun else request.messages
    if begun:
        said = {**said, "content": f"{begun.get('content') or ''}{c.text}"}
    return replace(
        request,
        messages=(*earlier, {"reasoning_content": "", **said}, *results),
        known_ids=(*done.prompt_ids, *c.token_ids) if done.prompt_ids else (),
        continues=False,
    )
