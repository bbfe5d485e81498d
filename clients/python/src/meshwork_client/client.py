"""The clients: connection, retries, iterators over lists, and `run`."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self, Unpack

import httpx

from . import types
from .methods import ROUTES, AsyncMethods, Methods
from .protocol import Deadline, MeshworkError, Request, ended, problem

# Defaults: timeout of a request without a wait in seconds (the server gives up after 18 s), and its repetitions.
TIMEOUT, RETRIES = 30.0, 5


class _Client:
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

    def _request(self, name: str, params: Any, idempotency_key: str | None) -> Request:
        return Request(name, params, idempotency_key, self._retries, self._timeout)


class Meshwork(_Client, Methods):
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

    def run(self, *, within: float | None = None, **job: Unpack[types.NewJobParams]) -> types.JobView:
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



class AsyncMeshwork(_Client, AsyncMethods):
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

    async def run(self, *, within: float | None = None, **job: Unpack[types.NewJobParams]) -> types.JobView:
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
