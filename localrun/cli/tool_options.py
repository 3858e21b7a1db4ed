"""`--tools` and `--allow`: which tools a model may call, and which of them run without a question."""

from typing import TYPE_CHECKING, Annotated

import typer

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.cli.groups import ANSWER_PANEL

if TYPE_CHECKING:
    from localrun.tools.chat_tools import ChatTools
    from localrun.tools.consent import Consent


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """Options for the tools of an answer."""

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
            help="a folder that tools may read, or a tool or mcp:SERVER that runs without a question; repeatable",
            rich_help_panel=ANSWER_PANEL,
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether an option of tools was typed."""
        return bool(self.tools or self.allow)

    def chat_tools(self, consent: "Consent | None" = None) -> "ChatTools":
        """The named tools with their permissions.

        Without a `consent` no question is asked, and what needs one is refused. Raises UsageError.
        """
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
            raise UsageError("--allow needs tools, and none are chosen", "choose some with --tools")
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
