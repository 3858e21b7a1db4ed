"""The profile of a model on a server: statements of its engine, and nothing that it leaves out."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, get_args

from localrun.base.constraint import Constraint
from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.request import Request, RequestMessage
from localrun.client.remote.engines import UNKNOWN, RemoteEngine

Ability = Literal["tools", "schemas", "images", "reasoning", "logprobs", "LoRA", "embeddings", "priorities"]
ABILITIES: tuple[Ability, ...] = get_args(Ability)


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """Statements of an engine about itself and one model. An empty text, a 0 and a missing ability: it does not say."""

    engine: RemoteEngine = UNKNOWN
    version: str = ""
    ctx: int = 0
    tokenizer: str = ""
    abilities: Mapping[Ability, bool] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The engine with its version."""
        return f"{self.engine.name} {self.version}".strip() or "an engine that does not say its name"

    def named(self, can: bool | None) -> str:
        """The abilities that it has (True), lacks (False) or does not speak of (None), in words; empty for none."""
        return ", ".join(name for name in ABILITIES if self.abilities.get(name) is can)

    @property
    def lines(self) -> tuple[str, ...]:
        """The profile in words for a person."""
        facts = (
            ("engine", self.title),
            ("context", f"{self.ctx:,}" if self.ctx else "not said"),
            ("tokenizer", self.tokenizer or "not said"),
            ("can", self.named(True)),
            ("cannot", self.named(False)),
            ("not said", self.named(None)),
        )
        return tuple(f"{name}: {words}" for name, words in facts if words)

    @property
    def summary(self) -> str:
        """Engine and abilities on one line."""
        parts = (self.title, *(f"{name} {words}" for can, name in _CAN if (words := self.named(can))))
        return " · ".join(parts)

    @property
    def why_blind(self) -> str | None:
        """A reason why no images are sent; None where the engine says that the model sees them."""
        match self.abilities.get("images"):
            case True:
                return None
            case False:
                return f"{self.title} says that this model sees no images"
            case _:
                return f"{self.title} does not say whether this model sees images"

    def check(self, request: Request) -> None:
        """Raise UsageError for a request of something that the engine says it cannot do."""
        wants: dict[Ability, tuple[bool, str]] = {
            "tools": (bool(request.tools), "choose another model, or leave the tools out"),
            "schemas": (_is_schema(request.constraint), "choose another model, or leave the schema out"),
            "images": (any(map(_has_image, request.messages)), "choose another model, or take the image out"),
            "reasoning": (request.think == "on", "choose another model, or let it answer without thinking"),
        }
        for ability, (is_wanted, hint) in wants.items():
            if is_wanted and self.abilities.get(ability) is False:
                raise UsageError(f"{self.title} says that this model {_LACKS[ability]}", hint)


_CAN = ((True, "can"), (False, "cannot"), (None, "not said:"))
_LACKS: dict[Ability, str] = {
    "tools": "cannot call tools",
    "schemas": "cannot be held to a schema",
    "images": "sees no images",
    "reasoning": "does not think",
}


def _is_schema(constraint: Constraint | None) -> bool:
    return constraint is not None and constraint.kind == "json_schema"


def _has_image(message: RequestMessage) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    return any("image" in str(part.get("type")) for part in parts if isinstance(part, dict))
