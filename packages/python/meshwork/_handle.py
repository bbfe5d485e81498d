"""Handles of enqueued jobs."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, cast

from ._errors import JobCancelled, JobFailed

if TYPE_CHECKING:
    from ._app import App

R = TypeVar("R")


class Handle(Generic[R]):
    """A job that was enqueued."""

    def __init__(self, app: "App", id: str) -> None:
        self._app = app
        #: Id of the job.
        self.id = id

    def __repr__(self) -> str:
        return f"<job {self.id}>"

    def result(self, timeout: Optional[float] = None) -> R:
        """Waits for the result, at most ``timeout`` seconds (default: no limit).

        Raises ``JobFailed`` if the job has ended without one, and ``ResultTimeout``.
        """
        job = json.loads(self._app._native().wait(self.id, timeout))
        if job["state"] == "finished":
            return cast(R, job.get("output"))
        raise (JobCancelled if job["state"] == "cancelled" else JobFailed)(job)

    async def aresult(self, timeout: Optional[float] = None) -> R:
        """Waits for the result, as :meth:`result`."""
        return await asyncio.get_running_loop().run_in_executor(None, self.result, timeout)

    def job(self) -> dict[str, Any]:
        """Returns the job as ``meshwork job show --json`` does: state, attempts, error, progress and more."""
        return cast("dict[str, Any]", json.loads(self._app._native().job(self.id)))

    def state(self) -> str:
        """Returns the state: queued, delayed, waiting, running, finished, failed, cancelling or cancelled."""
        return cast(str, self.job()["state"])

    def progress(self) -> Optional[dict[str, Any]]:
        """Returns the latest progress, with ``fraction`` and ``message``."""
        return self.job().get("progress_value")

    def logs(self) -> list[str]:
        """Returns the lines of the log."""
        return cast("list[str]", json.loads(self._app._native().logs(self.id)))

    def cancel(self) -> str:
        """Cancels the job. Returns what became of it: cancelled, cancelling or ended."""
        return cast(str, self._app._native().cancel(self.id))
