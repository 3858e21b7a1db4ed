"""Limits on what a server may send and how long it may take, and the error for an unusable server."""

MAX_MESSAGE = 8 << 20  # bytes of one message
MAX_TOOLS = 128  # of a server
MAX_NAME = 128  # characters of the name of a tool, as the specification has it
MAX_SCHEMA = 64 << 10  # characters of the schema of a tool's arguments
MAX_DESCRIPTION = 16 << 10  # characters of what a server says about a tool
MAX_TEXT = 1 << 20  # characters of a result; what a model gets of it is less
START_SECONDS = 60.0  # for a server to start and to list its tools
FINISH_SECONDS = 1.0  # for a server to end when its input does
TERMINATE_SECONDS = 0.5  # and when it is told to


class ServerError(Exception):
    """A server that cannot be used; the message follows its name."""
