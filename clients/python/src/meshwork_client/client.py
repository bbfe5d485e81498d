"""The clients: connection, retries, iterators over lists, events and logs with resume, and `run`."""

import asyncio
import math
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator
from typing import Any, Generic, Self, TypeVar, Unpack

import httpx

from . import types
from .methods import ROUTES, AsyncMethods, Methods
from .protocol import Deadline, Follow, MeshworkError, Request, StreamEvent, Topic, ended, problem

# Defaults: timeout of a request without a wait in seconds (the server gives up after 18 s), and its repetitions.
TIMEOUT, RETRIES = 30.0, 5

Stream = TypeVar("Stream")


class _Client(Generic[Stream]):
    """Options of both clients: `url`, `key`, the path of a Unix `socket`, and limits of requests."""

    _classes: tuple[Any, Any]

    def __init__(
        self,
        url: str = "http://localhost",
        key: str | None = None,
        socket: str | None = None,
        retries: int = RETRIES,
        timeout: float = TIMEOUT,
    ) -> None:
        headers = {"user-agent": "meshwork-client"} | ({} if key is None else {"authorization": f"Bearer {key}"})
        client, transport = self._classes
        self._http = client(base_url=url, headers=headers, transport=socket and transport(uds=socket))
        self._retries, self._timeout = retries, timeout
        super().__init__(self)  # type: ignore[call-arg]

    def events(self, *, after: str | None = None, **of: Unpack[Topic]) -> Stream:
        """Follow the events of a `job`, a `queue` or a `flow`, or of all, without end.

        `after` is the id of the last event that was seen. `"0"` begins with the oldest one that is stored, `None` with
        new ones. A stream that breaks off is opened again where it was.
        """
        return self._follow(Follow("/v1/events", of, after, self._retries))

    def logs(self, id: str, *, after: str | None = None) -> Stream:
        """Follow the log of a job to its end. A stream that breaks off is opened again where it was."""
        return self._follow(Follow.log(id, after, self._retries))

    @abstractmethod
    def _follow(self, follow: Follow) -> Stream: ...

    def _request(self, name: str, params: Any, idempotency_key: str | None) -> Request:
        return Request(name, params, idempotency_key, self._retries, self._timeout)


class Meshwork(_Client[Iterator[StreamEvent]], Methods):
    """Client for threads."""

    _classes = (httpx.Client, httpx.HTTPTransport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(self, name: str, params: Any, idempotency_key: str | None = None) -> Any:
        """Call a method by name, such as `job.get`."""
        request = self._request(name, params, idempotency_key)
        while True:
            response = None
            try:
                response = self._http.request(**request.args)
                if response.is_success:
                    return response.json()
                raise problem(response)
            except (httpx.TransportError, MeshworkError) as error:
                pause = request.retry.pause(error, response)
            time.sleep(pause)

    def iterate(self, name: str, params: Any) -> Iterator[Any]:
        """Iterate over the items of all pages of a list."""
        params = dict(params)
        while True:
            page = self.call(name, params)
            yield from page[ROUTES[name].items]
            if page["next"] is None:
                return
            params["cursor"] = page["next"]

    def run(self, *, within: float | None = None, **job: Unpack[types.JobSpecWithWait]) -> types.JobView:
        """Enqueue a job, and return it at its end. Raises `JobFailed` if it fails.

        After `within` seconds it raises a `MeshworkError` with the code `timeout`; the job goes on.
        """
        deadline = Deadline(within)
        made = self.call("job.create", {**job, "wait": deadline.wait()})
        return ended(made["job"]) if made["job"] else self.wait(made["id"], within=deadline.wait(math.inf))

    def wait(self, id: str, *, within: float | None = None) -> types.JobView:
        """Return a job at its end, as `run`."""
        deadline = Deadline(within)
        while True:
            try:
                return ended(self.call("job.result", {"id": id, "wait": deadline.wait()}))
            except MeshworkError as error:
                deadline.check(error)

    def wait_flow(self, id: int, *, context: int | None = None, within: float | None = None) -> types.FlowView:
        """Return a flow at its end. Raises `FlowFailed` if it fails; after `within` seconds as `run`."""
        deadline = Deadline(within)
        while True:
            flow = self.call("flow.get", {"id": id, "context": context, "wait": deadline.wait()})
            if deadline.flow_ended(flow):
                return flow

    def _follow(self, follow: Follow) -> Iterator[StreamEvent]:
        while True:
            response = None
            try:
                with self._http.stream(**follow.args(self._timeout)) as response:
                    if not response.is_success:
                        response.read()
                        raise problem(response)
                    for chunk in response.iter_bytes():
                        yield from follow.feed(chunk)
                        if follow.ended:
                            return
                    raise httpx.RemoteProtocolError("the stream broke off")
            except (httpx.TransportError, MeshworkError) as error:
                pause = follow.retry.pause(error, response)
            yield from follow.gap()
            time.sleep(pause)


class AsyncMeshwork(_Client[AsyncIterator[StreamEvent]], AsyncMethods):
    """Client for asyncio. Its methods do the same as those of `Meshwork`."""

    _classes = (httpx.AsyncClient, httpx.AsyncHTTPTransport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, name: str, params: Any, idempotency_key: str | None = None) -> Any:
        request = self._request(name, params, idempotency_key)
        while True:
            response = None
            try:
                response = await self._http.request(**request.args)
                if response.is_success:
                    return response.json()
                raise problem(response)
            except (httpx.TransportError, MeshworkError) as error:
                pause = request.retry.pause(error, response)
            await asyncio.sleep(pause)

    async def iterate(self, name: str, params: Any) -> AsyncIterator[Any]:
        params = dict(params)
        while True:
            page = await self.call(name, params)
            for item in page[ROUTES[name].items]:
                yield item
            if page["next"] is None:
                return
            params["cursor"] = page["next"]

    async def run(self, *, within: float | None = None, **job: Unpack[types.JobSpecWithWait]) -> types.JobView:
        deadline = Deadline(within)
        made = await self.call("job.create", {**job, "wait": deadline.wait()})
        return ended(made["job"]) if made["job"] else await self.wait(made["id"], within=deadline.wait(math.inf))

    async def wait(self, id: str, *, within: float | None = None) -> types.JobView:
        deadline = Deadline(within)
        while True:
            try:
                return ended(await self.call("job.result", {"id": id, "wait": deadline.wait()}))
            except MeshworkError as error:
                deadline.check(error)

    async def wait_flow(self, id: int, *, context: int | None = None, within: float | None = None) -> types.FlowView:
        deadline = Deadline(within)
        while True:
            flow = await self.call("flow.get", {"id": id, "context": context, "wait": deadline.wait()})
            if deadline.flow_ended(flow):
                return flow

    async def _follow(self, follow: Follow) -> AsyncIterator[StreamEvent]:
        while True:
            response = None
            try:
                async with self._http.stream(**follow.args(self._timeout)) as response:
                    if not response.is_success:
                        await response.aread()
                        raise problem(response)
                    async for chunk in response.aiter_bytes():
                        for item in follow.feed(chunk):
                            yield item
                        if follow.ended:
                            return
                    raise httpx.RemoteProtocolError("the stream broke off")
            except (httpx.TransportError, MeshworkError) as error:
                pause = follow.retry.pause(error, response)
            for item in follow.gap():
                yield item
            await asyncio.sleep(pause)
