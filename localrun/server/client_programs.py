"""Settings that point other programs at a server: variables and arguments only, so that none of their files change.

Each is set to the context that the model has, and kept from changing the beginning of its prompts with every request.
"""

import json
from collections.abc import Callable, Mapping

from localrun.base.dataclass import dataclass
from localrun.server.options import KEY_VARIABLE

_ANY_KEY = "localrun"  # for programs that insist on one


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Address and model of a server: `model` as it is listed, `ctx` in tokens."""

    url: str
    key: str
    model: str
    ctx: int


@dataclass(frozen=True, slots=True)
class Setup:
    """A program with its environment and arguments."""

    command: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """`install`: how to install it; `setup`: its launch for a server."""

    install: str
    setup: Callable[[ServerAddress], Setup]


def _codex(server: ServerAddress) -> Setup:
    settings = {
        "model_provider": "localrun",
        "model": server.model,
        "model_context_window": server.ctx,
        "model_providers.localrun.name": "localrun",
        "model_providers.localrun.base_url": f"{server.url}/v1",
        "model_providers.localrun.wire_api": "responses",
        "model_providers.localrun.env_key": KEY_VARIABLE,
    }
    options = (option for name, value in settings.items() for option in ("-c", f"{name}={json.dumps(value)}"))
    return Setup(("codex", *options), {KEY_VARIABLE: server.key or _ANY_KEY})


def _claude(server: ServerAddress) -> Setup:
    names = ("OPUS", "SONNET", "HAIKU")
    return Setup(
        ("claude", "--model", server.model),
        {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_AUTH_TOKEN": server.key or _ANY_KEY,
            "ANTHROPIC_API_KEY": "",
            **{f"ANTHROPIC_DEFAULT_{name}_MODEL": server.model for name in names},
            "CLAUDE_CODE_SUBAGENT_MODEL": server.model,
            "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",  # a line that changes with each request
            "CLAUDE_CODE_TOTAL_TOKENS_REMINDER": "off",
            "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(server.ctx),
        },
    )


def _opencode(server: ServerAddress) -> Setup:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "localrun",
        "options": {"baseURL": f"{server.url}/v1", "apiKey": server.key or _ANY_KEY},
        "models": {
            server.model: {"name": server.model, "limit": {"context": server.ctx, "output": max(1, server.ctx // 4)}}
        },
    }
    config = {"model": f"localrun/{server.model}", "provider": {"localrun": provider}}
    return Setup(("opencode",), {"OPENCODE_CONFIG_CONTENT": json.dumps(config)})


def _llm(server: ServerAddress) -> Setup:
    key = ("--key", server.key) if server.key else ()
    return Setup(("llm", "openai", "endpoint", f"{server.url}/v1", "-m", server.model, *key), {})


def _open_webui(server: ServerAddress) -> Setup:
    return Setup(
        ("open-webui", "serve"),
        {
            "OPENAI_API_BASE_URL": f"{server.url}/v1",
            "OPENAI_API_KEY": server.key or _ANY_KEY,
            "ENABLE_OLLAMA_API": "false",
            "DEFAULT_MODELS": server.model,
        },
    )


PROGRAMS: dict[str, ClientProgram] = {
    "codex": ClientProgram("npm install -g @openai/codex", _codex),
    "claude": ClientProgram("npm install -g @anthropic-ai/claude-code", _claude),
    "opencode": ClientProgram("npm install -g opencode-ai", _opencode),
    "llm": ClientProgram("pipx install llm", _llm),
    "open-webui": ClientProgram("pipx install open-webui", _open_webui),
}
