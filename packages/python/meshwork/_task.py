"""Tasks: functions that are enqueued as jobs."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import json
import typing
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar

from . import _codec
from ._context import Context

if typing.TYPE_CHECKING:
    from typing_extensions import ParamSpec
else:
    try:
        from typing import ParamSpec
    except ImportError:  # Python 3.9

        def ParamSpec(name: str) -> Any:
            return TypeVar(name)


from ._batch import BatchEnd
from ._flow import Before, Signature

if TYPE_CHECKING:
    from ._app import App
    from ._handle import Handle

P = ParamSpec("P")
R = TypeVar("R")

#: Options of a task that are fields of its jobs, as `meshwork job schema` describes them.
JOB_OPTIONS = frozenset(
    "id group route instance priority timeout retries backoff start_timeout tags depends_on on_failure "
    "prerequisite_timeout exclusive caller at tz delay key unique unique_for unique_until on_duplicate debounce throttle "
    "batch env input".split()
)
#: Options that may be functions of the arguments.
_COMPUTED = ("key", "unique")
#: Options that are settings of the task's queue, which workers of the app store.
LIMITS = ("concurrency", "key_concurrency", "rate")
#: Options of a child.
_OF_CHILDREN = frozenset("priority delay retries timeout key group env".split())


#: Stands for the result of the step before.
_RESULT: Any = object()


def _by_name(module: str, name: str, options: dict[str, Any]) -> "Task[..., Any]":
    task: Any = importlib.import_module(module)
    for part in name.split("."):
        task = getattr(task, part)
    return Task(task.app, task.function, task.name, options)


class Task(Generic[P, R]):
    """A function that runs as a job. A call runs it here and now; :meth:`enqueue` lets a worker run it."""

    def __init__(self, app: "App", function: Callable[..., Any], name: str, options: dict[str, Any]) -> None:
        for option in options:
            if option not in JOB_OPTIONS:
                known = ", ".join(sorted(JOB_OPTIONS.union(LIMITS)))
                raise TypeError(f"task {name}: there is no option {option!r}; options: {known}")
        self.app = app
        self.name = name
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self._options = options
        self._signature = inspect.signature(function)
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return typing.cast(R, self.function(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def __reduce__(self) -> Any:
        # As a function: by its name. The app and its connection stay here.
        return _by_name, (self.__module__, getattr(self, "__qualname__"), self._options)

    def options(self, **options: Any) -> "Task[P, R]":
        """Returns the task with other options for its jobs, such as ``delay="10m"`` or ``id=…``."""
        return Task(self.app, self.function, self.name, {**self._options, **options})

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> "Handle[R]":
        """Enqueues a job with these arguments.

        Raises ``TypeError`` if the arguments do not fit the function, and ``MeshworkError`` if the store refuses the job.
        """
        return self.app._enqueue(self._spec(args, kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> "Handle[R]":
        """Enqueues a job, as :meth:`enqueue`."""
        spec = self._spec(args, kwargs)
        return await asyncio.get_running_loop().run_in_executor(None, self.app._enqueue, spec)

    def enqueue_many(self, calls: "typing.Iterable[Any]") -> "list[Handle[R]]":
        """Enqueues a job for each of these calls: a tuple has positional arguments, a dict named ones, and any other value
        is the only argument. Either all are enqueued with one call to the store per 1,000, or an error names the first
        that is refused."""
        specs = []
        for call in calls:
            if isinstance(call, tuple):
                specs.append(self._spec(call, {}))
            elif isinstance(call, dict):
                specs.append(self._spec((), call))
            else:
                specs.append(self._spec((call,), {}))
        return self.app._enqueue_many(specs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Enqueues a job and waits for its result."""
        return typing.cast(R, self.app._enqueue(self._spec(args, kwargs), True).result())

    async def acall(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Enqueues a job and waits for its result."""
        call = functools.partial(self.call, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(None, call)

    def perform(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the task here as a worker does, without a store, and returns its result: for tests."""
        from .testing import perform

        return perform(Signature(self, args, kwargs, False)).result

    def s(self, *args: Any, **kwargs: Any) -> "Signature[R]":
        """Returns a call for a flow: its first free argument is the result of the step before."""
        return Signature(self, args, kwargs, True)

    def si(self, *args: P.args, **kwargs: P.kwargs) -> "Signature[R]":
        """Returns a call for a flow that takes no result of the step before."""
        return Signature(self, args, kwargs, False)

    def _hints(self) -> dict[str, Any]:
        if not hasattr(self, "_cached_hints"):
            try:
                hints = typing.get_type_hints(self.function, include_extras=True)
            except NameError:
                # A name that only a type checker imports.
                hints = dict(getattr(self.function, "__annotations__", {}))
            self._cached_hints = hints
        return self._cached_hints

    def _given(self) -> dict[str, Any]:
        """Returns the parameters that the run gives: their names and annotations."""
        hints = self._hints().items()
        return {name: hint for name, hint in hints if hint in (Context, BatchEnd) and name != "return"}

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        given = self._given()
        parameters = [p for p in self._signature.parameters.values() if p.name not in given]
        return self._signature.replace(parameters=parameters).bind(*args, **kwargs)

    def _encoded(self, bound: inspect.BoundArguments) -> dict[str, Any]:
        """Returns the arguments in JSON, by name."""
        hints, made = self._hints(), {}
        for name, value in bound.arguments.items():
            kind = self._signature.parameters[name].kind
            try:
                made[name] = _codec.encode(value)
                self._decode(name, made[name], hints, kind)
            except (ValueError, TypeError) as error:
                raise TypeError(f"{self.name}(): argument {name}: {error}") from None
        return made

    @staticmethod
    def _decode(name: str, value: Any, hints: dict[str, Any], kind: Any) -> Any:
        hint = hints.get(name, Any)
        if kind is inspect.Parameter.VAR_POSITIONAL:
            return [_codec.decode(item, hint) for item in value]
        if kind is inspect.Parameter.VAR_KEYWORD:
            return {key: _codec.decode(item, hint) for key, item in value.items()}
        return _codec.decode(value, hint)

    def _arguments(self, payload: Any, context: Context) -> tuple[list[Any], dict[str, Any]]:
        """Returns the arguments of a run."""
        if not isinstance(payload, dict):
            raise TypeError("the arguments are no JSON object")
        given, hints = self._given(), self._hints()
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, parameter in self._signature.parameters.items():
            if name in given:
                value: Any = context if given[name] is Context else context.batch_end
            elif name in payload:
                value = self._decode(name, payload.pop(name), hints, parameter.kind)
            elif context._has_results(name):
                value = self._decode(name, context._results(name), hints, parameter.kind)
            elif parameter.default is not inspect.Parameter.empty:
                value = parameter.default
            elif parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                continue
            else:
                raise TypeError(f"argument {name} is missing")
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        if payload:
            raise TypeError(f"there is no argument {', '.join(payload)}")
        return args, kwargs

    def _computed(self, bound: inspect.BoundArguments) -> dict[str, Any]:
        """Returns the options of a job: functions get the arguments by name."""
        options = dict(self._options)
        for name in _COMPUTED:
            if callable(options.get(name)):
                options[name] = str(options[name](**bound.arguments))
        return {name: value for name, value in options.items() if value is not None}

    def _spec(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Returns a job in JSON."""
        return json.dumps(self._job(self._bound(args, kwargs), []))

    def _spec_after(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], before: Optional[Before], takes_result: bool
    ) -> dict[str, Any]:
        """Returns a job that runs after others, and takes their results as its first free argument."""
        if before is None or not takes_result:
            return self._job(self._bound(args, kwargs), list(before.ids) if before else [])
        bound = self._bound((_RESULT, *args), kwargs)
        for name, value in bound.arguments.items():
            if value is _RESULT:
                del bound.arguments[name]
                return self._job(bound, before.named(name))
        raise TypeError(f"{self.name}() has no parameter for the result of the step before: use {self.name}.si()")

    def _job(self, bound: inspect.BoundArguments, before: list[str]) -> dict[str, Any]:
        payload, options = self._encoded(bound), self._computed(bound)
        depends_on = [getattr(one, "id", one) for one in options.get("depends_on", [])] + before
        if depends_on:
            options["depends_on"] = depends_on
        return {"type": self.name, "payload": payload, **options}

    def _child(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        bound = self._bound(args, kwargs)
        options = {name: value for name, value in self._computed(bound).items() if name in _OF_CHILDREN}
        return {"payload": self._encoded(bound), "options": {"type": self.name, **options}}
