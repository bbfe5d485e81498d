"""Requests, retries and event streams of the API, without I/O: the same for both clients."""

import json
import math
import random
import time
import uuid
from dataclasses import dataclass
from typing import Any, TypedDict
from urllib.parse import quote

import httpx

from .methods import ROUTES

# Pauses before repeated requests in seconds: the first, and the longest. Each is twice as long as the one before.
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
# The server waits at most 300 s for a job.
LONGEST_WAIT = 300.0
# Wait of one request of `run`: proxies end connections without data after a minute.
RUN_WAIT = 45.0
# A stream without a comment for so long is lost: the server sends one every 15 s.
STREAM_IDLE = 45.0
# Longest line of a stream in bytes. The server's are shorter.
MAX_LINE = 4 * 1024 * 1024
# Answers after which a request is repeated if repetition changes nothing more.
UNCERTAIN = frozenset({502, 503, 504})


class MeshworkError(Exception):
    """The API refused a call. `code` is the kind of the error (docs/api.md)."""

    def __init__(self, status: int, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.status, self.code, self.hint = status, code, hint


class JobFailed(MeshworkError):
    """A job ended in error. `job` is its record."""

    def __init__(self, job: Any) -> None:
        super().__init__(200, "execution_error", f"job {job['id']} failed: {job['error']}")
        self.job = job


class FlowFailed(MeshworkError):
    """A flow ended in error. `flow` is its state."""

    def __init__(self, flow: Any) -> None:
        super().__init__(200, "execution_error", f"flow {flow['id']} failed: {flow.get('error')}")
        self.flow = flow


@dataclass(frozen=True)
class StreamEvent:
    """Item of a stream. `kind` is `event`, `line`, or `gap` if items may be missing before the next one."""

    id: str
    kind: str
    data: Any


class Topic(TypedDict, total=False):
    """Events to follow: those of one of these, or of all."""

    job: str
    queue: str
    flow: int


def problem(response: httpx.Response) -> MeshworkError:
    """Return the error of a response."""
    try:
        body = response.json()
        return MeshworkError(response.status_code, body["code"], body["detail"], body.get("hint"))
    except (ValueError, KeyError, TypeError):
        text = f"the server answered {response.status_code} {response.reason_phrase}"  # or a proxy
        return MeshworkError(response.status_code, "internal", text)


def given(params: Any) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def ended(job: Any) -> Any:
    """Return a job that finished."""
    if job["status"] == "error":
        raise JobFailed(job)
    return job


class Deadline:
    """End of a wait; none without a number of seconds."""

    def __init__(self, seconds: float | None) -> None:
        self.at = math.inf if seconds is None else time.monotonic() + seconds

    def wait(self, most: float = RUN_WAIT) -> float:
        """Return the wait of the next request, or the time that is left."""
        return max(0.0, min(most, self.at - time.monotonic()))

    def check(self, error: MeshworkError) -> None:
        """Raise an error, unless it is the end of one request's wait."""
        if error.code != "timeout" or self.wait() == 0.0:
            raise error

    def flow_ended(self, flow: Any) -> bool:
        """Return whether a flow finished; raise an error if it failed, or the deadline is over."""
        if flow["status"] == "error":
            raise FlowFailed(flow)
        if flow["status"] != "finished":
            self.check(MeshworkError(408, "timeout", f"flow {flow['id']} has not ended"))
        return flow["status"] == "finished"


class Retry:
    """Decides on the repetition of a request."""

    def __init__(self, retries: int, repeatable: bool) -> None:
        self.retries, self.repeatable, self.failures = retries, repeatable, 0

    def pause(self, error: Exception, response: httpx.Response | None) -> float:
        """Return the pause before the next attempt in seconds, or raise the error."""
        match error:
            case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.PoolTimeout():
                again = True
            case MeshworkError(status=429, code=code):
                again = code != "limit_exceeded"  # the caller decides about a queue that is full
            case MeshworkError(status=status):
                again = self.repeatable and status in UNCERTAIN
            case _:
                again = self.repeatable
        if not again or self.failures >= self.retries:
            raise error
        pause = min(FIRST_PAUSE * 2**self.failures, LONGEST_PAUSE)
        self.failures += 1
        after = response.headers.get("retry-after", "") if response is not None else ""
        if after.isdigit():
            pause = max(pause, min(float(after), LONGEST_PAUSE))
        # Clients that lost the same server do not come back at the same moment.
        return pause * random.uniform(0.5, 1.0)


class Request:
    """A call as arguments for httpx."""

    def __init__(self, name: str, params: Any, key: str | None, retries: int, timeout: float) -> None:
        route, rest, headers = ROUTES[name], dict(params), {}
        path = route.path
        for part in route.in_path:
            if part not in rest:
                raise TypeError(f"{name}: give {part}")
            path = path.replace("{" + part + "}", quote(str(rest.pop(part)), safe=""))
        if route.keyed:
            headers["idempotency-key"] = key or str(uuid.uuid4())  # a repeated request creates nothing again
        timeout += LONGEST_WAIT if route.waits else 0
        self.args: dict[str, Any] = {"method": route.verb, "url": path, "headers": headers, "timeout": timeout}
        self.args |= {"json": rest} if route.verb in ("POST", "PUT") else {"params": given(rest)}
        self.retry = Retry(retries, route.keyed or route.verb in ("GET", "PUT"))


class Follow:
    """A stream of server-sent events that is opened again where it broke off."""

    def __init__(self, path: str, params: Any, after: str | None, retries: int) -> None:
        self.path, self.params, self.after, self.ended = path, given(params), after, False
        self.retry = Retry(retries, repeatable=True)

    @classmethod
    def log(cls, id: str, after: str | None, retries: int) -> "Follow":
        """Return the stream of a job's log, from its first line on."""
        return cls(f"/v1/jobs/{quote(id, safe='')}/logs", {"follow": "true"}, after or "0", retries)

    def args(self, timeout: float) -> dict[str, Any]:
        self._fields: dict[str, str] = {}
        self._rest = b""
        headers = {"accept": "text/event-stream"} | ({} if self.after is None else {"last-event-id": self.after})
        times = httpx.Timeout(timeout, read=STREAM_IDLE)
        return {"method": "GET", "url": self.path, "params": self.params, "headers": headers, "timeout": times}

    def gap(self) -> list[StreamEvent]:
        """Return a gap if the stream broke off before it had a position."""
        return [StreamEvent("", "gap", {})] if self.after is None else []

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Take a part of the stream, and return the items that it completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise MeshworkError(200, "internal", f"a line of the stream exceeds {MAX_LINE} bytes")
        return [item for line in lines for item in self._line(line.decode())]

    def _line(self, line: str) -> list[StreamEvent]:
        if line:
            name, _, value = line.partition(":")
            if name:
                self._fields[name] = value.removeprefix(" ")
            self.retry.failures = 0  # the server is there
            return []
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return []
        item = StreamEvent(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
        # `closed`: the server ends, or this client was too slow.
        self.after = (item.data["last"] if item.kind == "closed" else item.id) or self.after
        self.ended = item.kind == "end"
        return [] if item.kind in ("closed", "end") else [item]
