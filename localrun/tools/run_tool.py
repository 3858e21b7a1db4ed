"""Running of a tool on a thread of its own, so that a hanging tool ends its call and not the chat."""

import threading
import time
from dataclasses import replace

from localrun.base.request import Json
from localrun.tools.running_call import RunningCall, ToolError, ToolResult
from localrun.tools.tool import Tool

GRACE_SECONDS = 3.0  # for which a tool that is to stop may clean up
_LOOK_SECONDS = 0.05
_LEFT = ToolResult("the tool did not stop when it was to, and was left behind", is_error=True)


def run_tool(tool: Tool, arguments: Json, running: RunningCall) -> ToolResult:
    """The result of a call; an error where the tool fails, its time is up, or it is cancelled and does not stop."""
    results: list[ToolResult] = []
    over = threading.Event()

    def work() -> None:
        try:
            results.append(_result(tool, arguments, running))
        finally:
            over.set()

    began = time.monotonic()
    threading.Thread(target=work, name=f"tool {tool.name}", daemon=True).start()
    try:
        while not (over.wait(_LOOK_SECONDS) or running.is_cancelled or not running.seconds_left):
            pass
    finally:
        running.cancel()  # also where Ctrl-C ends this thread
        over.wait(GRACE_SECONDS)
    return replace(results[0] if results else _LEFT, seconds=time.monotonic() - began)


def _result(tool: Tool, arguments: Json, running: RunningCall) -> ToolResult:
    try:
        return tool.run(arguments, running)
    except ToolError as error:
        return running.error(error)
    except Exception as error:  # whatever a tool does, the chat goes on
        return running.result(f"the tool failed: {type(error).__name__}: {error}", is_error=True)
