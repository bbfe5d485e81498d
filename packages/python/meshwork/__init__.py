"""Tasks on Meshwork: functions that run as jobs, on workers that have loaded them once.

    from meshwork import App

    app = App("redis://127.0.0.1")

    @app.task(retries=3)
    def send_mail(to: str, subject: str) -> str:
        return f"sent {subject} to {to}"

    send_mail.enqueue("ada@example.org", subject="Hello").result()

A worker runs it: ``meshwork worker --app shop.tasks:app``.
"""

from ._app import App
from ._batch import Batch, BatchEnd
from ._context import Context, current
from ._errors import (
    Discard,
    JobCancelled,
    JobExists,
    JobFailed,
    MeshworkError,
    Permanent,
    ResultTimeout,
    Retry,
    Snooze,
)
from ._flow import GroupHandle, Signature, chain, chord, group
from ._handle import Handle
from ._task import Task

__all__ = [
    "App",
    "Batch",
    "BatchEnd",
    "Context",
    "Discard",
    "GroupHandle",
    "Handle",
    "JobCancelled",
    "JobExists",
    "JobFailed",
    "MeshworkError",
    "Permanent",
    "ResultTimeout",
    "Retry",
    "Signature",
    "Snooze",
    "Task",
    "chain",
    "chord",
    "current",
    "group",
]
