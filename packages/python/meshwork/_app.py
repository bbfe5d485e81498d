"""The app: its tasks, and its connection to the store."""

from __future__ import annotations

import json
import os
import uuid
from typing import Any, Callable, Optional, TypeVar, cast, overload

from ._batch import Batch, open_batch
from ._errors import MeshworkError
from ._flow import Signature
from ._handle import Handle
from ._task import LIMITS, P, Task

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

#: A function around each run: it gets the run and a function that goes on, and returns its result.
Middleware = Callable[..., Any]


class App:
    """Tasks, and the store of their jobs.

    ``url`` is that of a Redis server (``redis://``, ``rediss://``, ``redis+sentinel://``, ``redis+cluster://``) or a folder
    for the embedded engine (``dir:PATH``). Default: the environment variable ``REDIS_URL``, else the data directory of the
    command. The connection is made with the first job.

    ``context`` is the number of a context, whose jobs the app has; ``actor_key`` is the key file of the actor that uses it.
    Default: the one of the environment variable ``MESHWORK_ACTOR_KEY``, else ``~/.config/meshwork/actor.key``.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        namespace: Optional[str] = None,
        context: Optional[int] = None,
        actor_key: Optional[str] = None,
    ) -> None:
        self._url = url
        self._namespace = namespace
        self._context = context
        self._actor_key = actor_key
        self._client: Any = None
        self.tasks: dict[str, Task[..., Any]] = {}
        #: Called after each job, in the eager mode of tests.
        self._after_enqueue: Callable[[], Any] = lambda: None
        self._limits: dict[str, dict[str, Any]] = {}
        self._batch_done: Optional[Task[..., Any]] = None
        self._schedules: list[dict[str, Any]] = []
        self._starts: list[Callable[[], Any]] = []
        self._stops: list[Callable[[], Any]] = []
        self._middlewares: list[Middleware] = []

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(self, function: None = None, /, *, name: Optional[str] = None, **options: Any) -> Callable[[Callable[P, R]], Task[P, R]]: ...

    def task(self, function: Optional[Callable[..., Any]] = None, /, *, name: Optional[str] = None, **options: Any) -> Any:
        """Makes a function a task. Its name, by default that of the function, is the type of its jobs.

        Options are those of jobs (``meshwork job schema``): ``retries``, ``backoff``, ``timeout``, ``group``, ``priority``,
        ``delay``, ``tags``, … ``key`` and ``unique`` may be functions of the arguments.

        ``concurrency``, ``key_concurrency`` and ``rate`` limit the jobs that run at once, those of one key, and their starts
        (``"100/min"``), on all workers together. Workers of the app store these limits when they start.
        """
        limits = {limit: options.pop(limit) for limit in LIMITS if limit in options}

        def make(function: Callable[..., Any]) -> Task[..., Any]:
            task: Task[..., Any] = Task(self, function, name or function.__name__, options)
            if limits:
                self._limits[task.name] = {**limits, "group": options.get("group")}
            known = self.tasks.get(task.name)
            if known is not None and known.function is not function:
                raise MeshworkError(f"two tasks have the name {task.name!r}: give one of them another, as @app.task(name=…)")
            self.tasks[task.name] = task
            return task

        return make if function is None else make(function)

    def schedule(
        self, cron: str, *, name: Optional[str] = None, zone: Optional[str] = None, **arguments: Any
    ) -> Callable[[Task[P, R]], Task[P, R]]:
        """Runs a task repeatedly, with these arguments: ``@app.schedule("*/15 * * * *")`` above ``@app.task``.

        ``cron`` is a cron expression or an interval as ``@every 30s``, ``zone`` the time zone of a cron expression (default:
        UTC), ``name`` that of the schedule (default: the name of the task). Workers of the app store the schedule when they
        start. It stays until ``meshwork schedule remove NAME``.
        """

        def add(task: Task[P, R]) -> Task[P, R]:
            job = json.loads(task._spec((), arguments))
            self._schedules.append({"name": name or task.name, "cron": cron, "zone": zone, "job": job})
            return task

        return add

    def batch_done(self, function: Callable[P, R]) -> Task[P, R]:
        """Makes a function the task that runs when a batch of the app has ended, unless the batch has another ``on_done``.
        A parameter annotated with ``BatchEnd`` gets the numbers of its jobs."""
        task = self.task(function)
        self._batch_done = task
        return task

    def batch(
        self,
        name: str = "",
        *,
        on_done: Optional[Signature[Any]] = None,
        on_success: Optional[Signature[Any]] = None,
        on_failure: Optional[Signature[Any]] = None,
        open_for: Optional[float] = None,
    ) -> Batch:
        """Creates a batch: up to a million jobs with callbacks.

            with app.batch("invoices", on_success=report.s()) as batch:
                batch.add(invoice.s(customer) for customer in customers)

        ``open_for`` is the longest time without a new job, in seconds (default: one hour). A batch that is not sealed then
        has failed.
        """
        if on_done is None and self._batch_done is not None:
            on_done = self._batch_done.s()
        callbacks = {"on_done": on_done, "on_success": on_success, "on_failure": on_failure}
        return open_batch(self, name, open_for, callbacks)

    def on_start(self, function: F) -> F:
        """Runs a function once in each process of a worker, before its first task: to open a pool of connections."""
        self._starts.append(function)
        return function

    def on_stop(self, function: F) -> F:
        """Runs a function at the end of each process of a worker."""
        self._stops.append(function)
        return function

    def middleware(self, function: F) -> F:
        """Runs a function around each task: it gets the context and a function that goes on, and returns its result. It is
        async for async tasks: ``await go_on()``."""
        self._middlewares.append(function)
        return function

    def job(self, id: str) -> Handle[Any]:
        """Returns the handle of a job."""
        return Handle(self, id)

    def close(self) -> None:
        """Closes the connection. A later call opens it again."""
        client, self._client = self._client, None
        if client is not None and client[0] == os.getpid():
            client[1].close()

    def _native(self) -> Any:
        """Returns the client of this process: one that was made before a fork has no threads here."""
        pid = os.getpid()
        if self._client is None or self._client[0] != pid:
            from ._connect import connect

            if self._client is not None:
                # Its destructor would wait for threads that this process does not have.
                _abandoned.append(self._client[1])
            self._client = (pid, connect(self._url, self._namespace, self._context, self._actor_key))
        return self._client[1]

    def _new_id(self) -> str:
        """Returns the id of a job that is enqueued later."""
        return str(uuid.uuid4()) if self._context is None else cast(str, self._native().next_id())

    def _enqueue(self, spec: str, reply: bool = False) -> Handle[Any]:
        id = self._native().enqueue(spec, reply)
        self._after_enqueue()
        return Handle(self, id)

    def _enqueue_many(self, specs: list[str]) -> list[Handle[Any]]:
        ids = self._native().enqueue_many(specs)
        self._after_enqueue()
        return [Handle(self, id) for id in ids]


#: Clients that were made before a fork.
_abandoned: list[Any] = []
