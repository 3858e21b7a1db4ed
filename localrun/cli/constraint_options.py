"""Options of a constraint: what an answer has to hold to."""

from dataclasses import dataclass
from typing import Annotated

import typer

from localrun.base.constraint import Constraint, check_constraint
from localrun.base.errors import UsageError
from localrun.cli.groups import ANSWER_PANEL, switch
from localrun.cli.text_input import read_text_file, typed_text


@dataclass(frozen=True, slots=True)
class ConstraintOptions:
    """At most one of them."""

    schema: Annotated[
        str | None,
        typer.Option(
            "--schema",
            metavar="FILE|JSON",
            help="the answer is JSON that holds to this JSON schema",
            rich_help_panel=ANSWER_PANEL,
        ),
    ] = None
    lenient: Annotated[
        bool, switch("--lenient", "leave out what of SCHEMA answers cannot be held to, and say so", ANSWER_PANEL)
    ] = False
    regex: Annotated[
        str | None,
        typer.Option(
            "--regex",
            metavar="REGEX",
            help="the whole answer matches this regular expression",
            rich_help_panel=ANSWER_PANEL,
        ),
    ] = None
    grammar: Annotated[
        str | None,
        typer.Option(
            "--grammar",
            metavar="FILE",
            help="the answer is of this grammar, in llguidance's dialect of Lark",
            rich_help_panel=ANSWER_PANEL,
        ),
    ] = None

    def constraint(self) -> Constraint | None:
        """The constraint that was typed. Raises UsageError for more than one, or for none that can be read."""
        typed = [f"--{name}" for name in ("schema", "regex", "grammar") if getattr(self, name) is not None]
        if len(typed) > 1:
            raise UsageError(f"{' and '.join(typed)} exclude each other")
        constraint = None
        if self.schema is not None:
            is_inline = self.schema.lstrip().startswith("{")
            text = typed_text(self.schema) if is_inline else read_text_file(self.schema)
            constraint = Constraint("json_schema", text, self.lenient)
        elif self.lenient:
            raise UsageError("--lenient says how to read a schema", "give one with --schema, or leave it out")
        elif self.regex is not None:
            constraint = Constraint("regex", typed_text(self.regex))
        elif self.grammar is not None:
            constraint = Constraint("lark", read_text_file(self.grammar))
        if constraint is not None:
            check_constraint(constraint)
        return constraint
