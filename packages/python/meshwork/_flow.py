"""Flows of tasks: chains, groups and chords, which one call to the store enqueues.

Each job depends on those before it: the result of a prerequisite is the first argument of the next task.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Generic, Iterable, Optional, TypeVar, Union

from ._errors import MeshworkError
from ._handle import Handle

if TYPE_CHECKING:
    from ._app import App
    from ._task import Task

R = TypeVar("R")

#: Greatest number of jobs of a flow: those that one step of the store enqueues.
MAX_JOBS = 1000


@dataclasses.dataclass(frozen=True)
class Before:
    """Jobs whose results the next task gets: that of the only one, or a list of all."""

    ids: tuple[str, ...]
    is_list: bool

    def named(self, parameter: str) -> list[str]:
        """Returns the prerequisites of a job whose parameter gets the results."""
        if not self.is_list:
            return [f"{parameter}={self.ids[0]}"]
        return [f"{parameter}.{at}={id}" for at, id in enumerate(self.ids)]


class Step:
    """A part of a flow."""

    def __or__(self, other: "Step") -> "chain":
        return chain(self, other)

    def _app(self) -> "App":
        raise NotImplementedError

    def _add(self, before: Optional[Before], specs: list[dict[str, Any]]) -> Before:
        """Adds the jobs of this step, and returns those whose results are its own."""
        raise NotImplementedError

    def _enqueue(self) -> Before:
        specs: list[dict[str, Any]] = []
        last = self._add(None, specs)
        if len(specs) > MAX_JOBS:
            raise MeshworkError(f"a flow has at most {MAX_JOBS} jobs, not {len(specs)}: use app.batch()")
        self._app()._enqueue_many([json.dumps(spec) for spec in specs])
        return last


class Signature(Step, Generic[R]):
    """A task with arguments: ``task.s(…)``. In a flow its first free argument is the result of the step before; that of
    ``task.si(…)`` is not."""

    def __init__(self, task: "Task[..., R]", args: tuple[Any, ...], kwargs: dict[str, Any], takes_result: bool) -> None:
        self.task = task
        self.args = args
        self.kwargs = kwargs
        self._takes_result = takes_result

    def options(self, **options: Any) -> "Signature[R]":
        """Returns it with other options for its job."""
        return Signature(self.task.options(**options), self.args, self.kwargs, self._takes_result)

    def enqueue(self) -> Handle[R]:
        """Enqueues the job."""
        return self.task.app._enqueue(self.spec())

    def spec(self) -> str:
        """Returns the job in JSON, as ``meshwork job schema`` describes it."""
        return self.task._spec(self.args, self.kwargs)

    def _app(self) -> "App":
        return self.task.app

    def _add(self, before: Optional[Before], specs: list[dict[str, Any]]) -> Before:
        spec = self.task._spec_after(self.args, self.kwargs, before, self._takes_result)
        spec.setdefault("id", self.task.app._new_id())
        specs.append(spec)
        return Before((spec["id"],), False)


class chain(Step):
    """Steps that run one after another: ``chain(a.s(1), b.s())``, or ``a.s(1) | b.s()``. If a job fails, those behind it
    fail too."""

    def __init__(self, *steps: Step) -> None:
        if not steps:
            raise TypeError("chain(): give a step")
        self.steps: list[Step] = []
        for step in steps:
            self.steps.extend(step.steps if isinstance(step, chain) else [step])

    def enqueue(self) -> Any:
        """Enqueues the jobs, and returns the handle of the last one, or of the group at the end."""
        return _handle(self._app(), self._enqueue())

    def _app(self) -> "App":
        return self.steps[0]._app()

    def _add(self, before: Optional[Before], specs: list[dict[str, Any]]) -> Before:
        for step in self.steps:
            before = step._add(before, specs)
        assert before is not None
        return before


class group(Step):
    """Steps that run side by side: ``group(a.s(n) for n in range(10))``. The step behind it gets the list of their
    results."""

    def __init__(self, *steps: Union[Step, Iterable[Step]]) -> None:
        self.steps: list[Step] = []
        for step in steps:
            self.steps.extend([step] if isinstance(step, Step) else step)
        if not self.steps:
            raise TypeError("group(): give a step")

    def enqueue(self) -> "GroupHandle":
        """Enqueues the jobs."""
        return GroupHandle(self._app(), self._enqueue().ids)

    def _app(self) -> "App":
        return self.steps[0]._app()

    def _add(self, before: Optional[Before], specs: list[dict[str, Any]]) -> Before:
        ends = [step._add(before, specs) for step in self.steps]
        return Before(tuple(id for end in ends for id in end.ids), True)


def chord(header: Union[group, Iterable[Step]], callback: Step) -> chain:
    """A task that runs when all jobs of a group have finished, and gets the list of their results:
    ``chord(group(…), total.s())``."""
    return chain(header if isinstance(header, group) else group(header), callback)


class GroupHandle:
    """The jobs of a group."""

    def __init__(self, app: "App", ids: Iterable[str]) -> None:
        #: Their handles, in order.
        self.jobs: list[Handle[Any]] = [Handle(app, id) for id in ids]

    def results(self, timeout: Optional[float] = None) -> list[Any]:
        """Waits for the results of all, at most ``timeout`` seconds for each."""
        return [job.result(timeout) for job in self.jobs]


def _handle(app: "App", last: Before) -> Union[Handle[Any], GroupHandle]:
    return GroupHandle(app, last.ids) if last.is_list else Handle(app, last.ids[0])
