"""The one family of errors a user may see: what happened, and what to try."""


class LocalrunError(Exception):
    """Base of every expected failure; faces print `message`, then `hint`, and leave with `exit_code`."""

    exit_code = 1
    kind = "internal"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def twin(self) -> "LocalrunError":
        """The same error once more, without its traceback."""
        twin = type(self).__new__(type(self))
        twin.args = self.args
        vars(twin).update(vars(self))
        return twin


class UsageError(LocalrunError):
    """The call itself is wrong, or asks for a backend this machine lacks. `field`: the one of a request at fault."""

    exit_code = 2
    kind = "usage"

    def __init__(self, message: str, hint: str = "", field: str = "") -> None:
        super().__init__(message, hint)
        self.field = field


class ConstraintError(UsageError):
    """Answers cannot be held to the constraint of a request."""

    kind = "constraint"


class ToolSchemaError(ConstraintError):
    """Calls of a tool cannot be held to its schema."""

    kind = "tool_schema"


class ImageError(UsageError):
    """An image cannot be seen. `code` names why."""

    kind = "bad_image"

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


class NotFoundError(LocalrunError):
    """No such model, repo, file or precision."""

    exit_code = 3
    kind = "not_found"


class DoesNotFitError(LocalrunError):
    """The model or its cache does not fit, or memory ran out."""

    exit_code = 4
    kind = "does_not_fit"


class PromptTooLongError(LocalrunError):
    """The prompt is longer than the context. `n_tokens` is its length, `ctx` what it may have with its answer; 0 where
    that is not known."""

    exit_code = 5
    kind = "prompt_too_long"

    def __init__(self, message: str, hint: str = "", n_tokens: int = 0, ctx: int = 0) -> None:
        super().__init__(message, hint)
        self.n_tokens, self.ctx = n_tokens, ctx


def prompt_too_long(size: str, ctx: int, n_tokens: int = 0) -> PromptTooLongError:
    """The error about a prompt of this size for a context of `ctx` tokens."""
    return PromptTooLongError(
        f"the prompt has {size}; the context holds {ctx:,}, the answer needs one",
        "shorten it, or give the model a larger context with --ctx",
        n_tokens,
        ctx,
    )


class ModelFileError(LocalrunError):
    """A model file is malformed or unsupported. `code` names the rule it broke, `offset` the byte where known."""

    exit_code = 6
    kind = "bad_model_file"

    def __init__(self, code: str, message: str, *, path: str = "", offset: int | None = None, hint: str = "") -> None:
        where = f"{path}: " if path else ""
        at = f" (at byte {offset:,})" if offset is not None else ""
        super().__init__(f"{where}{message}{at}", hint or "download the file again, or try another one")
        self.code = code
        self.path = path
        self.offset = offset


class HubError(LocalrunError):
    """Anything between us and the hub: gated, token, network, checksum, disk full."""

    exit_code = 7
    kind = "hub"


class TokenError(HubError):
    """The hub wants a token, or one with access."""


class DiskFullError(HubError):
    """The disk has no room for a download."""


class StorageError(LocalrunError):
    """Something of ours could not be written: the disk is full, or failed."""

    exit_code = 7
    kind = "storage"


class EngineError(LocalrunError):
    """The engine died, or computed something that is not a number."""

    exit_code = 8
    kind = "engine"


class EngineDiedError(EngineError):
    """The process the engine lives in is gone: killed, hung or out of memory. The next request starts it again."""

    kind = "engine_died"


class DeviceLostError(EngineDiedError):
    """The GPU failed, and does nothing more for this process. The next request starts another."""

    kind = "device_lost"


class RefusedCallError(LocalrunError):
    """The model called a tool that was not allowed, and there is no one to be asked."""

    exit_code = 9
    kind = "refused"


def unexpected(error: Exception) -> LocalrunError:
    """An unexpected error in words for the user, raised in place of the answer."""
    return LocalrunError(f"something failed inside localrun: {type(error).__name__}: {error}", "try again")


# In a RuntimeError of torch, on MPS, Windows, Linux and in cuBLAS.
OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "ALLOC_FAILED")


def ran_out(error: BaseException) -> bool:
    """Whether `error` means that main memory or a device's could not be had; torch says so in words."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)


def lost_device(error: BaseException) -> bool:
    """Whether `error` means that a GPU does nothing more for this process: torch or the driver say so in words."""
    said = type(error).__name__ in ("AcceleratorError", "CUDAError") or "CUDA error" in str(error)
    return said and not ran_out(error)
