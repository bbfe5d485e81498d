"""What a task knows of its run."""

from __future__ import annotations

import contextvars
import json
import threading
from typing import TYPE_CHECKING, Any, Callable, Optional

from ._batch import BatchEnd
from ._errors import MeshworkError

if TYPE_CHECKING:
    from ._task import Task


class Context:
    """The run of a task: a parameter annotated with ``Context`` gets it, and :func:`current` returns it."""

    def __init__(self, run: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
        #: Id of the job, the same in each attempt.
        self.id: str = run["id"]
        #: Name of the task.
        self.task: str = run["type"]
        #: Number of the attempt, from 1.
        self.attempt: int = run["attempt"]
        #: Seconds that the run had at its start.
        self.timeout: float = run["timeout"]
        #: Id of the caller.
        self.caller: str = run.get("caller", "")
        #: Input besides the arguments, as a text.
        self.input: Optional[str] = run.get("input")
        #: Environment of the job.
        self.env: dict[str, str] = run.get("env", {})
        #: Trace context of the run, in W3C's form.
        self.traceparent: Optional[str] = run.get("traceparent")
        #: Reason for which the run has to end: ``timeout``, ``cancelled`` or ``lost``.
        self.cancel_reason: Optional[str] = None
        self._run: int = run["run"]
        self._inputs: dict[str, Any] = run.get("inputs") or {}
        self._send = send
        self._cancelled = threading.Event()
        self._calls = 0
        self._children: dict[int, tuple[threading.Event, list[dict[str, Any]]]] = {}

    @property
    def cancelled(self) -> bool:
        """True if the run has to end: after its timeout, a cancel request, or a lost lease."""
        return self._cancelled.is_set()

    def wait_cancelled(self, timeout: Optional[float] = None) -> bool:
        """Waits until the run has to end, at most ``timeout`` seconds. Returns whether it has to."""
        return self._cancelled.wait(timeout)

    def log(self, text: str) -> None:
        """Adds a line to the job's log. ``print`` does so too."""
        self._send({"log": {"run": self._run, "text": f"{text}\n"}})

    def progress(self, fraction: float, message: Optional[str] = None) -> None:
        """Reports progress: a fraction from 0 to 1, and a text. The latest report is stored."""
        self._send({"progress": {"run": self._run, "fraction": fraction, "message": message}})

    def result_of(self, name: str) -> Any:
        """Returns the result of a prerequisite, by its name or id."""
        if name not in self._inputs:
            known = ", ".join(self._inputs) or "none"
            raise MeshworkError(f"there is no input {name!r}: this job has {known}")
        entry = self._inputs[name]
        if "error" in entry:
            raise MeshworkError(entry["error"])
        return entry.get("result")

    @property
    def batch_end(self) -> BatchEnd:
        """The end of the batch whose callback this job is."""
        if self.input is None:
            raise MeshworkError("this job is no callback of a batch")
        return BatchEnd(**json.loads(self.input))

    def _has_results(self, name: str) -> bool:
        return name in self._inputs or f"{name}.0" in self._inputs

    def _results(self, name: str) -> Any:
        """Returns the result of the prerequisite of this name, or the list of those that are numbered from 0."""
        if name in self._inputs:
            return self.result_of(name)
        results: list[Any] = []
        while f"{name}.{len(results)}" in self._inputs:
            results.append(self.result_of(f"{name}.{len(results)}"))
        return results

    def add_child(self, task: "Task[..., Any]", *args: Any, **kwargs: Any) -> str:
        """Adds a child, a job of this task, and returns its id. Its options are those of ``task.options()``.

        The same calls of a later attempt return the same ids and add nothing, so each attempt has to add the same children
        in the same order.
        """
        self._calls += 1
        call = self._calls
        answered, answer = threading.Event(), list[dict[str, Any]]()
        self._children[call] = (answered, answer)
        self._send({"add_child": {"run": self._run, "call": call, **task._child(args, kwargs)}})
        answered.wait()
        if "error" in answer[0]:
            raise MeshworkError(answer[0]["error"])
        return str(answer[0]["id"])

    def _answered(self, message: dict[str, Any]) -> None:
        answered, answer = self._children.pop(message["call"])
        answer.append(message)
        answered.set()

    def _cancel(self, reason: str) -> None:
        self.cancel_reason = reason
        self._cancelled.set()


_current: contextvars.ContextVar[Optional[Context]] = contextvars.ContextVar("meshwork_run", default=None)


def current() -> Context:
    """Returns the run of the task that calls this."""
    context = _current.get()
    if context is None:
        raise MeshworkError("no task runs here: current() works within a task")
    return context
