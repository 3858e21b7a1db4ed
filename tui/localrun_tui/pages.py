"""The pages that keys and commands lead to from anywhere, and what becomes of the model that is chosen there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.screen import Screen

from localrun_tui.keys import groups
from localrun_tui.screens.chat.chat_screen import ChatScreen
from localrun_tui.state.session import Session

if TYPE_CHECKING:
    from localrun.client.choice import ModelChoice


class Pages(App[Any]):
    """`flags` are settings that came with the command line."""

    session: Session
    chat_screen: ChatScreen
    flags: Mapping[str, Any]

    def action_models(self, title: str = "Models", words: str = "") -> None:
        info = self.session.info
        section = "remote" if info is not None and info.engine == "remote" and not words else "disk"
        self.chat_screen.run_guarded(self.choose_model(section, title, words), opens=True)

    async def choose_model(self, section: str = "disk", title: str = "Models", words: str = "") -> None:
        from localrun_tui.screens.models.models_screen import ModelsScreen

        model = self.session.model
        await self._load_from(ModelsScreen(section, model.held_bytes, title, words, model.path_in_use))

    def action_downloads(self) -> None:
        from localrun_tui.screens.downloads.downloads import DownloadsScreen

        self.chat_screen.run_guarded(self._load_from(DownloadsScreen()), opens=True)

    async def _load_from(self, screen: "Screen[ModelChoice | None]") -> None:
        """Load the choice of a screen, if any; where that fails or is given up, the present model stays."""
        from localrun_tui.state.continue_chat import load_instead

        choice = await self.push_screen_wait(screen)
        if choice is not None:
            await load_instead(self.session, choice)

    def action_change_theme(self) -> None:
        from localrun_tui.screens.settings.theme_choice import choose_theme

        self.chat_screen.run_guarded(choose_theme(self), opens=True)

    def action_token(self) -> None:
        from localrun_tui.screens.settings.token_question import ask_for_token

        self.chat_screen.run_guarded(ask_for_token(self), opens=True)

    def action_requests(self) -> None:
        from localrun_tui.screens.requests.request_sources import OwnRequests
        from localrun_tui.screens.requests.requests_screen import RequestsScreen

        self.push_screen(RequestsScreen(OwnRequests(self.session.server)))

    def action_help(self) -> None:
        from localrun.chat.commands import commands_of
        from localrun_tui.screens.help_screen import HelpScreen

        commands = [(command.usage, f"{command.title}: {command.help}") for command in commands_of("app").values()]
        self.push_screen(HelpScreen(groups(), commands))

    def action_explain(self, topic: str = "") -> None:
        from localrun_tui.screens.explain.explain_screen import ExplainScreen
        from localrun_tui.screens.explain.measurable import measurable

        session, model = self.session, self.session.model
        explain = measurable(model.client, lambda: session.answering)
        self.push_screen(ExplainScreen(model.info, model.held_bytes, explain, topic))

    def action_settings(self) -> None:
        self.chat_screen.run_guarded(self._change_settings(), opens=True)

    async def _change_settings(self) -> None:
        from localrun_tui.screens.models.load_again import reload_for
        from localrun_tui.screens.settings.settings_screen import SettingsScreen

        changed = await self.push_screen_wait(SettingsScreen(self.flags, self.session.info))
        await reload_for(self, self.session, changed)

    def action_precisions(self) -> None:
        from localrun_tui.screens.models.load_again import choose_form

        self.chat_screen.run_guarded(choose_form(self, self.session), opens=True)
