"""Date and time of this machine, or of a time zone."""

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from localrun.base.request import Json
from localrun.tools.running_call import RunningCall, ToolError, ToolResult
from localrun.tools.tool import Tool


def _run(arguments: Json, call: RunningCall) -> ToolResult:
    zone = arguments["time_zone"]
    try:
        now = datetime.now(ZoneInfo(zone)) if zone else datetime.now().astimezone()
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolError(f"there is no time zone {zone[:100]}", "name one such as Europe/Berlin or UTC") from None
    return call.result(now.strftime("%A, %Y-%m-%d %H:%M:%S %Z (UTC%z)"))


TIME = Tool(
    "time",
    "Tell today's date and the time.",
    {
        "type": "object",
        "properties": {
            "time_zone": {
                "type": "string",
                "description": "such as Europe/Berlin; without it that of the user",
                "default": "",
            }
        },
    },
    _run,
    asks="never",
)
