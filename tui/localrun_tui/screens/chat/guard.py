"""Work that may fail, with its error shown above the composer."""

from collections.abc import Awaitable
from typing import Any

from textual.widget import Widget

from localrun.base.errors import LocalrunError, unexpected
from localrun_tui.keys_in_order import keys_wait_for_dialog
from localrun_tui.screens.chat.notice import Notice
from localrun_tui.state.session import Session


class WorkGuard:
    """Work runs as a worker of `owner`, and ends with it. `opens`: it may open a dialog, which the next keys wait for;
    `begins`: it may begin an answer or a load instead, and they wait no longer."""

    def __init__(self, owner: Widget, notice: Notice, session: Session) -> None:
        self._owner = owner
        self._notice = notice
        self._session = session

    def run(self, work: Awaitable[Any], opens: bool = False, begins: bool = False) -> None:
        worker = self._owner.run_worker(self._guarded(work), exit_on_error=False)
        if opens:
            session = self._session
            turn, loads = session.turn, session.model.loading

            def has_begun() -> bool:
                return begins and (session.turn is not turn or session.model.loading > loads)

            keys_wait_for_dialog(worker, self._owner.app, has_begun)

    async def _guarded(self, work: Awaitable[Any]) -> None:
        try:
            await work
        except LocalrunError as error:
            self._notice.say_error(error)
        except Exception as error:
            self._notice.say_error(unexpected(error))
        problem = self._session.problem
        if problem:
            self._notice.say(f"⚠ {problem}")
