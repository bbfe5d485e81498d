"""Batches: any number of jobs with callbacks."""

from __future__ import annotations

import dataclasses
import json
import uuid
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable, Optional, Union, cast

from ._flow import Signature
from ._handle import Handle

if TYPE_CHECKING:
    from ._app import App


@dataclasses.dataclass(frozen=True)
class BatchEnd:
    """The end of a batch, for its callback: a parameter annotated with it."""

    #: Id of the batch.
    batch: str
    #: ``done``, ``success`` or ``failure``.
    why: str
    #: Number of its jobs.
    total: int
    #: Number of jobs that have finished.
    succeeded: int
    #: Number of jobs that have failed.
    failed: int


class Batch:
    """A batch, which takes jobs until it is sealed. A ``with`` statement seals it at its end, or cancels it after an
    exception."""

    def __init__(self, app: "App", id: str) -> None:
        self._app = app
        #: Id of the batch.
        self.id = id

    def __repr__(self) -> str:
        return f"<batch {self.id}>"

    def add(self, *calls: Union["Signature[Any]", Iterable["Signature[Any]"]]) -> list[Handle[Any]]:
        """Enqueues jobs of the batch: ``batch.add(task.s(n) for n in range(10000))``, 1,000 with each call to the store."""
        all: list[Signature[Any]] = []
        for call in calls:
            all.extend([call] if isinstance(call, Signature) else call)
        return self._app._enqueue_many([call.options(batch=self.id).spec() for call in all])

    def seal(self) -> None:
        """Lets the batch end when all its jobs have ended."""
        self._native().seal_batch(self._app._native(), self.id)

    def cancel(self, reason: str = "the batch was cancelled") -> bool:
        """Cancels the batch and its jobs. Returns false if it had ended."""
        return cast(bool, self._native().cancel_batch(self._app._native(), self.id, reason))

    def status(self) -> dict[str, Any]:
        """Returns the batch as ``meshwork batch status --json`` does: state, total, pending, succeeded, failed and more."""
        return cast("dict[str, Any]", json.loads(self._native().batch(self._app._native(), self.id)))

    @staticmethod
    def _native() -> Any:
        from . import _native

        return _native

    def __enter__(self) -> "Batch":
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if error is None:
            self.seal()
        else:
            self.cancel(f"{type(error).__name__}: {error}")


def open_batch(
    app: "App", name: str, open_for: Optional[float], callbacks: dict[str, Optional["Signature[Any]"]]
) -> Batch:
    """Creates a batch with these callbacks."""
    id = str(uuid.uuid4())
    spec: dict[str, Any] = {"id": id, "name": name, "open_for": open_for}
    for event, callback in callbacks.items():
        if callback is not None:
            spec[event] = json.loads(callback.spec())
    Batch._native().open_batch(app._native(), json.dumps(spec))
    return Batch(app, id)
