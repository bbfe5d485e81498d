"""Tests of tasks: run one without a store, or use a store in memory whose clock the test advances.

    def test_mail(meshwork_store):
        place_order(7)
        meshwork_store.assert_enqueued(send_mail, "ada@example.org")
        assert meshwork_store.drain().finished == 1

The package has a plugin for pytest with the fixture ``meshwork_store``.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime as dt
import json
import os
import threading
from typing import Any, Callable, Generic, Iterator, Mapping, Optional, TypeVar, Union

from ._app import App
from ._codec import encode
from ._context import Context, _current
from ._errors import MeshworkError, Verdict
from ._flow import Signature
from ._task import Task

R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class Performed(Generic[R]):
    """A run without a store."""

    #: The result, as those who wait for the job get it.
    result: R
    #: What the task has logged with ``ctx.log``.
    log: str
    #: The latest progress: a fraction and a text.
    progress: Optional[tuple[float, Optional[str]]]
    #: The children that it has added.
    children: "list[Enqueued]"


@dataclasses.dataclass(frozen=True)
class Enqueued:
    """A job that waits."""

    id: str
    task: str
    #: Arguments by name, as JSON has them.
    arguments: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Drained:
    """Numbers of jobs in the store after :meth:`Store.drain`."""

    finished: int
    failed: int
    #: Jobs that wait for their time, or for a retry.
    delayed: int
    #: Jobs that wait for others, or for a task of another app.
    waiting: int


def perform(
    call: Signature[R],
    *,
    attempt: int = 1,
    id: str = "test",
    inputs: Optional[Mapping[str, Any]] = None,
    env: Optional[Mapping[str, str]] = None,
    caller: str = "",
) -> Performed[R]:
    """Runs ``task.s(…)`` here, as a worker does: its arguments go through JSON, and middlewares run around it.

    ``inputs`` are results of prerequisites by name. Exceptions of the task are raised, also ``Retry`` and the like.
    """
    spec = json.loads(call.spec())
    run = {
        "run": 0,
        "id": id,
        "type": call.task.name,
        "attempt": attempt,
        "timeout": 60.0,
        "caller": caller,
        "env": dict(env or {}),
        "inputs": {name: {"result": encode(value)} for name, value in (inputs or {}).items()},
    }
    context = _TestContext(run)
    result = _run(call.task, spec["payload"], context)
    return Performed(json.loads(json.dumps(encode(result))), "".join(context.logged), context.last_progress, context.added)


class _TestContext(Context):
    """A run whose messages stay here."""

    def __init__(self, run: dict[str, Any], app: Optional[App] = None) -> None:
        self.logged: list[str] = []
        self.last_progress: Optional[tuple[float, Optional[str]]] = None
        self.added: list[Enqueued] = []
        self._app = app
        super().__init__(run, self._received)

    def _received(self, message: dict[str, Any]) -> None:
        [(kind, content)] = message.items()
        if kind == "log":
            self.logged.append(content["text"])
        elif kind == "progress":
            self.last_progress = (content["fraction"], content["message"])

    def add_child(self, task: "Task[..., Any]", *args: Any, **kwargs: Any) -> str:
        self._calls += 1
        id = f"{self.id}.{self._calls}"
        spec = json.loads(task.options(id=id)._spec(args, kwargs))
        self.added.append(Enqueued(id, task.name, spec["payload"]))
        if self._app is not None:
            with contextlib.suppress(MeshworkError):  # An earlier attempt has added it.
                self._app._enqueue(json.dumps(spec))
        return id


def _run(task: "Task[..., Any]", payload: Any, context: Context) -> Any:
    args, kwargs = task._arguments(payload, context)
    token = _current.set(context)
    try:
        if task.is_async:
            return asyncio.run(_around(task, context, args, kwargs))
        return _around(task, context, args, kwargs)
    finally:
        _current.reset(token)


def _around(task: "Task[..., Any]", context: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
    def call() -> Any:
        return task.function(*args, **kwargs)

    for middleware in reversed(task.app._middlewares):
        call = _wrapped(middleware, context, call)
    return call()


def _wrapped(middleware: Any, context: Context, call: Any) -> Any:
    return lambda: middleware(context, call)


class Store:
    """A store in memory, which the app uses until :meth:`close`. Its clock begins at the time of the host."""

    def __init__(self, app: App) -> None:
        from . import _native

        self._app = app
        self._before = app._client
        self._client = _native.Client("memory:")
        app._client = (os.getpid(), self._client)

    def close(self) -> None:
        """Gives the app its own store back."""
        self._app._client = self._before

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def advance(self, by: Union[float, dt.timedelta]) -> None:
        """Advances the clock, by seconds or a ``timedelta``: what is delayed until then is due."""
        self._client.advance(by.total_seconds() if isinstance(by, dt.timedelta) else float(by))

    def enqueued(self, task: "Task[..., Any]") -> list[Enqueued]:
        """Returns the jobs of a task that have not ended."""
        jobs = json.loads(self._client.open_jobs(task.name))
        return [Enqueued(job["id"], task.name, job["payload"]) for job in jobs]

    def assert_enqueued(self, task: "Task[..., Any]", *args: Any, **kwargs: Any) -> Enqueued:
        """Returns an open job of the task with these arguments; without arguments, any. Raises ``AssertionError``."""
        found = self._found(task, args, kwargs)
        if found is None:
            known = "; ".join(json.dumps(job.arguments) for job in self.enqueued(task)) or "none"
            raise AssertionError(f"no open job of {task.name} has the arguments {args} {kwargs}; open jobs: {known}")
        return found

    def _found(self, task: "Task[..., Any]", args: tuple[Any, ...], kwargs: dict[str, Any]) -> Optional[Enqueued]:
        expected = json.loads(task._spec(args, kwargs))["payload"] if args or kwargs else None
        matching = (job for job in self.enqueued(task) if expected in (None, job.arguments))
        return next(matching, None)

    def refute_enqueued(self, task: "Task[..., Any]", *args: Any, **kwargs: Any) -> None:
        """Raises ``AssertionError`` if there is an open job of the task with these arguments; without arguments, any."""
        found = self._found(task, args, kwargs)
        if found is not None:
            raise AssertionError(f"job {found.id} of {task.name} has the arguments {json.dumps(found.arguments)}")

    def drain(self) -> Drained:
        """Runs all due jobs of the app's tasks here, and those that they enqueue. Later retries and delayed jobs wait for
        :meth:`advance`."""
        from . import _native

        return Drained(**json.loads(_native.drain(self._client, list(self._app.tasks), self._one)))

    def _one(self, message: str) -> str:
        run = json.loads(message)
        context = _TestContext(run, self._app)
        try:
            result = _run(self._app.tasks[run["type"]], run["payload"], context)
            return json.dumps({"done": {"result": encode(result)}})
        except Verdict as error:
            return json.dumps({"failed": {"error": str(error), "verdict": error.verdict, "after": error.after}})
        except Exception as error:
            return json.dumps({"failed": {"error": f"{type(error).__name__}: {error}"}})


@contextlib.contextmanager
def eager(app: App) -> Iterator[None]:
    """Runs each enqueued job at once, in the call that enqueues it. Its failure is that of the job, as with a worker."""
    before = app._after_enqueue
    with Store(app) as store:
        app._after_enqueue = _outermost(store)
        try:
            yield
        finally:
            app._after_enqueue = before


def _outermost(store: Store) -> Callable[[], None]:
    """Drains the store, but not within a drain: that runs what its tasks enqueue."""
    drains = threading.Lock()

    def drain() -> None:
        if drains.acquire(blocking=False):
            try:
                store.drain()
            finally:
                drains.release()

    return drain
