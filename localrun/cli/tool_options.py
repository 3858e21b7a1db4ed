"""`--tools` and `--allow`: what a model may call, and what that may do without being asked about."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from localrun.base.errors import UsageError
from localrun.cli.groups import ANSWER_PANEL

if TYPE_CHECKING:
    from localrun.tools.chat_tools import ChatTools
    from localrun.tools.consent import Consent


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """Tools of an answer."""

    tools: Annotated[
        str | None,
        typer.Option(
            "--tools",
            metavar="NAMES",
            help="tools that the model may call, as in calculator,time,read,mcp:SERVER",
            rich_help_panel=ANSWER_PANEL,
        ),
    ] = None
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="FOLDER|TOOL",
            help="a folder that tools may read in, or a tool or mcp:SERVER that need not ask; repeatable",
            rich_help_panel=ANSWER_PANEL,
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether there is anything of tools on the command line."""
        return bool(self.tools or self.allow)

    def chat_tools(self, consent: "Consent | None" = None) -> "ChatTools":
        """The tools that are named, with what is allowed; nobody is asked without a `consent`. Raises UsageError."""
        from localrun.tools.allowed_tools import AllowedTools
        from localrun.tools.chat_tools import ChatTools
        from localrun.tools.folders import Folders
        from localrun.tools.mcp.chosen import PREFIX, names_servers
        from localrun.tools.permissions import NeverAsked
        from localrun.tools.tools_command import allow_folder

        tools = ChatTools(consent or NeverAsked(), Folders(), AllowedTools.at_home())
        tools.choose([name.strip() for name in (self.tools or "").split(",") if name.strip()])
        names = {tool.name for tool in tools.built_in} | {f"{PREFIX}{name}" for name in tools.servers.names}
        if self.allow and not names:
            raise UsageError("--allow says what tools may do, and there are none", "choose some with --tools")
        for allowed in self.allow or ():
            if (allowed.partition("/")[0] if names_servers(allowed) else allowed) in names:
                tools.allow(allowed)
                continue
            try:
                allow_folder(tools, allowed)
            except UsageError as error:
                hint = f"name a folder, or one of the tools: {', '.join(sorted(names))}"
                raise UsageError(f"--allow {allowed} is neither a folder nor a tool of --tools", hint) from error
        return tools
