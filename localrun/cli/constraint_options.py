"""Options that constrain an answer: a schema, a regular expression or a grammar."""

from typing import Annotated

import typer

from localrun.base.constraint import Constraint, one_constraint
from localrun.base.dataclass import dataclass
from localrun.cli.groups import ANSWER_PANEL, switch
from localrun.cli.text_input import read_text_file, typed_text


@dataclass(frozen=True, slots=True)
class ConstraintOptions:
    """Options of a constraint; at most one may be given."""

    schema: Annotated[
        str | None,
        typer.Option(
            "--schema",
            metavar="FILE|JSON",
            help="the answer is JSON that conforms to this JSON schema",
            rich_help_panel=ANSWER_PANEL,
        ),
    ] = None
    lenient: Annotated[
        bool, switch("--lenient", "ignore parts of SCHEMA that cannot be enforced, with a note", ANSWER_PANEL)
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
            help="the answer follows this grammar, in llguidance's dialect of Lark",
            rich_help_panel=ANSWER_PANEL,
        ),
    ] = None

    def constraint(self) -> Constraint | None:
        """The constraint that was typed. Raises UsageError for more than one, or for one that cannot be read."""
        schema = self.schema
        if schema is not None:
            schema = typed_text(schema) if schema.lstrip().startswith("{") else read_text_file(schema)
        regex = None if self.regex is None else typed_text(self.regex)
        grammar = None if self.grammar is None else read_text_file(self.grammar)
        return one_constraint(schema, regex, grammar, self.lenient)
