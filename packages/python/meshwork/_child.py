"""A process of a worker: loads an app and runs its tasks. ``python -m meshwork._child shop.tasks:app`` starts it.

Its stdin is a socket. Each line on it is a message, an object of JSON: see docs/adding-a-language.md.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import ctypes
import importlib
import inspect
import io
import json
import os
import signal
import socket
import sys
import threading
import traceback
from typing import Any, Callable, Optional

from ._app import App
from ._codec import encode
from ._context import Context, _current
from ._errors import MeshworkError, Permanent, Verdict
from ._task import Task

PROTOCOL = 1
#: Request to the kernel to end this process with its parent (prctl).
_PR_SET_PDEATHSIG = 1


class Cancelled(BaseException):
    """Ends a task that runs in a thread."""


def main(target: str) -> None:
    channel = Channel()
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    app = load(target)
    asyncio.run(Process(app, channel).serve())


def load(target: str) -> App:
    """Loads the app ``module:attribute``."""
    module, _, attribute = target.partition(":")
    sys.path.insert(0, os.getcwd())
    found: Any = importlib.import_module(module)
    for part in (attribute or "app").split("."):
        found = getattr(found, part)
    if not isinstance(found, App):
        raise SystemExit(f"{target} is no meshwork.App, but {type(found).__name__}")
    return found


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Channel:
    """The socket to the worker."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._socket = socket.socket(fileno=os.dup(0))
        with open(os.devnull, "rb") as null:
            os.dup2(null.fileno(), 0)
        self._socket.setblocking(True)
        self.lines = self._socket.makefile("rb")
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        if os.getpid() != self._pid:
            return  # A process that a task has forked has no run.
        line = json.dumps(message).encode() + b"\n"
        with self._lock:
            try:
                self._socket.sendall(line)
            except OSError:
                os._exit(1)


class Process:
    """Runs tasks until the worker ends it."""

    def __init__(self, app: App, channel: Channel) -> None:
        self._app = app
        self._channel = channel
        self._runs: dict[int, Run] = {}
        self._threads = concurrent.futures.ThreadPoolExecutor(max_workers=1000, thread_name_prefix="task")

    async def serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        sys.stdout = Printed(sys.stdout, False)
        sys.stderr = Printed(sys.stderr, True)
        for start in self._app._starts:
            await _finished(start())
        tasks = [{"name": name, **self._app._limits.get(name, {})} for name in self._app.tasks]
        ready = {"protocol": PROTOCOL, "tasks": tasks, "schedules": self._app._schedules}
        self._channel.send({"ready": ready})
        threading.Thread(target=self._read, name="messages", daemon=True).start()
        await self._stopped.wait()
        for stop in self._app._stops:
            await _finished(stop())
        sys.stdout.flush()
        os._exit(0)  # Threads of tasks may be left.

    def _read(self) -> None:
        """Reads messages on a thread, so that also a blocked loop sees the end of the worker."""
        try:
            for line in self._channel.lines:
                [(kind, message)] = json.loads(line).items()
                if kind == "cancel":
                    self._cancel(message)
                elif kind == "child":
                    run = self._runs.get(message["run"])
                    if run is not None:
                        run.context._answered(message)
                elif kind == "run":
                    self._begin(message)
                elif kind == "stop":
                    self._loop.call_soon_threadsafe(self._stopped.set)
        except OSError:
            pass
        if not self._stopped.is_set():
            os._exit(1)

    def _begin(self, message: dict[str, Any]) -> None:
        run = Run(Context(message, self._channel.send), self._app, self._channel.send, self._ended)
        self._runs[message["run"]] = run
        if run.task is not None and run.task.is_async:
            self._loop.call_soon_threadsafe(run.start_async, message["payload"])
        else:
            self._threads.submit(contextvars.Context().run, run.in_thread, message["payload"])

    def _cancel(self, message: dict[str, Any]) -> None:
        run = self._runs.get(message["run"])
        if run is not None:
            run.context._cancel(message["reason"])
            run.cancel(self._loop)

    def _ended(self, number: int) -> None:
        self._runs.pop(number, None)


async def _finished(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class Run:
    """One run of a task."""

    def __init__(
        self, context: Context, app: App, send: Callable[[dict[str, Any]], None], ended: Callable[[int], None]
    ) -> None:
        self.context = context
        self.task: Optional[Task[..., Any]] = app.tasks.get(context.task)
        self._middlewares = app._middlewares
        self._send = send
        self._ended = ended
        self._lock = threading.Lock()
        self._thread: Optional[int] = None
        self._coroutine: Optional[asyncio.Task[None]] = None

    def cancel(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.task is not None and self.task.is_async:
            loop.call_soon_threadsafe(lambda: self._coroutine and self._coroutine.cancel())
            return
        with self._lock:
            if self._thread is not None:
                # The exception comes at the next line of Python; a call that blocks in C goes on until then.
                thread = ctypes.c_ulong(self._thread)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(Cancelled))

    def start_async(self, payload: Any) -> None:
        self._coroutine = asyncio.get_running_loop().create_task(self._async(payload))

    async def _async(self, payload: Any) -> None:
        _current.set(self.context)
        try:
            args, kwargs = self._arguments(payload)
            assert self.task is not None
            call: Callable[[], Any] = lambda: self.task.function(*args, **kwargs)  # type: ignore[union-attr]
            for middleware in reversed(self._middlewares):
                call = _around(middleware, self.context, call)
            self._done(await call())
        except asyncio.CancelledError:
            self._failed(Permanent("the run was cancelled"))
        except BaseException as error:
            self._failed(error)

    def in_thread(self, payload: Any) -> None:
        _current.set(self.context)
        with self._lock:
            self._thread = threading.get_ident()
        try:
            if self.context.cancelled:
                raise Cancelled
            args, kwargs = self._arguments(payload)
            assert self.task is not None
            call: Callable[[], Any] = lambda: self.task.function(*args, **kwargs)  # type: ignore[union-attr]
            for middleware in reversed(self._middlewares):
                call = _around(middleware, self.context, call)
            result = call()
            self._leave()
            self._done(result)
        except BaseException as error:
            self._leave()
            self._failed(error)

    def _leave(self) -> None:
        """Lets no later cancel reach the thread, which goes on with other runs."""
        with self._lock:
            self._thread = None
            # One that has not arrived yet.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), None)

    def _arguments(self, payload: Any) -> tuple[list[Any], dict[str, Any]]:
        if self.task is None:
            raise Permanent(f"there is no task {self.context.task!r} in this app")
        try:
            return self.task._arguments(payload, self.context)
        except (TypeError, ValueError, MeshworkError) as error:
            raise Permanent(f"the arguments do not fit {self.task.name}(): {error}") from None

    def _done(self, result: Any) -> None:
        try:
            encoded = encode(result)
            json.dumps(encoded)
        except (TypeError, ValueError) as error:
            self._failed(Permanent(f"the result of {self.context.task} has no form in JSON: {error}"))
            return
        self._ended(self.context._run)
        self._send({"done": {"run": self.context._run, "result": encoded}})

    def _failed(self, error: BaseException) -> None:
        failure: dict[str, Any] = {"run": self.context._run, "error": _message(error)}
        if isinstance(error, Verdict):
            failure["verdict"], failure["after"] = error.verdict, error.after
        if not isinstance(error, (Verdict, Cancelled)) or error.__cause__ is not None:
            failure["traceback"] = _trace(error)
        self._ended(self.context._run)
        self._send({"failed": failure})


def _around(middleware: Callable[..., Any], context: Context, call: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: middleware(context, call)


def _message(error: BaseException) -> str:
    if isinstance(error, Cancelled):
        return "the run was cancelled"
    text = str(error)
    if isinstance(error, Verdict):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _trace(error: BaseException) -> str:
    """Returns the traceback without the lines of this module."""
    trace = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in trace.stack if frame.filename != __file__]
    trace.stack = traceback.StackSummary.from_list(frames)
    return "".join(trace.format())


class Printed(io.TextIOBase):
    """What a task prints goes to its log, and the rest to the worker's stderr."""

    def __init__(self, outside: Any, is_stderr: bool) -> None:
        self._outside = outside
        self._is_stderr = is_stderr

    def write(self, text: str) -> int:
        context = _current.get()
        if context is None:
            self._outside.write(text)
        else:
            context._send({"log": {"run": context._run, "text": text, "stderr": self._is_stderr}})
        return len(text)

    def flush(self) -> None:
        self._outside.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return int(self._outside.fileno())

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


if __name__ == "__main__":
    main(sys.argv[1])
