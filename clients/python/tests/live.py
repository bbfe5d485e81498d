"""Tests of the installed client against a running server. Arguments: the server's address, a free address, and a key."""

import asyncio
import socket
import sys
import threading

from meshwork_client import AsyncMeshwork, FlowFailed, JobFailed, Meshwork, MeshworkError

BUFFER = 65536


def socket_address(text: str) -> tuple[str, int]:
    host, port = text.split(":")
    return host, int(port)


class Proxy:
    """Forwards connections to the server, cuts them, and loses answers."""

    def __init__(self, address: str, target: str) -> None:
        self.target, self.url = socket_address(target), f"http://{address}"
        self.losing, self.lost, self.open = 0, 0, []
        self.listener = socket.create_server(socket_address(address))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.target)
            self.open += [client, server]
            for pair in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.forward, args=pair, daemon=True).start()

    def forward(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        try:
            while data := source.recv(BUFFER):
                if is_answer and self.losing > 0:
                    self.losing, self.lost = self.losing - 1, self.lost + 1
                    break
                target.sendall(data)
        except OSError:
            pass
        self.close(source, target)

    @staticmethod
    def close(*sockets: socket.socket) -> None:
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self) -> None:
        """Cut all connections."""
        self.close(*self.open)


def code(call) -> str:
    try:
        call()
    except MeshworkError as error:
        return error.code
    return "no error"


def runs(mesh: Meshwork) -> None:
    assert mesh.run(type="osis", script="6 * 7")["output"] == 42
    try:
        mesh.run(type="osis", script='throw "boom"')
        raise AssertionError("it finished")
    except JobFailed as error:
        assert "boom" in str(error) and error.job["status"] == "error", error
    assert code(lambda: mesh.run(within=0.2, type="other", script="1")) == "timeout"
    assert code(lambda: mesh.job.get(id="a/b c?")) == "not_found"
    assert code(lambda: mesh.job.create(type="o s", script="1")) == "invalid_params"
    assert mesh.job.why(id="p-0")["waits"][0]["reason"] == "no_worker"


def waits_for_flows(mesh: Meshwork) -> None:
    submit = lambda script: mesh.flow.submit(flow=f"{{flow: f, jobs: {{a: {{type: osis, script: {script!r}}}}}}}")["id"]
    flow = mesh.wait_flow(submit("6 * 7"))
    assert (flow["status"], flow["jobs"][0]["status"]) == ("finished", "finished"), flow
    failing = submit("throw 1")
    try:
        mesh.wait_flow(failing, within=60)
        raise AssertionError("it finished")
    except FlowFailed as error:
        assert error.flow["id"] == failing, error
    asking = mesh.flow.submit(flow="{flow: f, jobs: {a: {approve: 'Go on?'}}}")["id"]
    assert code(lambda: mesh.wait_flow(asking, within=0.2)) == "timeout"
    assert code(lambda: mesh.wait_flow(999)) == "not_found"


def pages_cancels_and_retries(mesh: Meshwork, proxy: Proxy) -> None:
    ids = [f"p-{n}" for n in range(7)]
    for id in ids:
        mesh.job.create(type="paged", script="1", id=id)
    queued = {"state": "queued", "queue": "paged", "limit": 2}
    assert [job["id"] for job in mesh.job.iter(**queued)] == ids
    assert mesh.job.cancel(id="p-3")["result"] == "cancelled"
    assert len(list(mesh.job.iter(**queued))) == 6
    assert mesh.job.retry(id="p-3")["result"] == "queued"
    assert [job["id"] for job in mesh.job.iter(**queued)] == [*ids[:3], *ids[4:], "p-3"]
    proxy.losing = 2
    made = mesh.job.create(type="once", script="1")
    assert proxy.losing == 0
    assert [job["id"] for job in mesh.job.iter(state="queued", queue="once")] == [made["id"]]
    # A call that changes something again is not repeated.
    proxy.losing = 1
    assert "disconnected" in str(lost(lambda: mesh.job.cancel(id="p-4")))


def lost(call) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("no error")


def follows(mesh: Meshwork, proxy: Proxy) -> None:
    lines = "".join(f'print("line {n}\\u2028");' for n in range(50))
    id = mesh.job.create(type="osis", script=lines)["id"]
    seen = []
    for line in mesh.logs(id):
        seen.append(line.data["line"])
        if len(seen) in (1, 20):
            proxy.cut()
    assert seen == [f"line {n}\u2028" for n in range(50)], seen
    last = [line.id for line in mesh.logs(id)][-2]
    assert [line.data["line"] for line in mesh.logs(id, after=last)] == seen[-1:]
    events, ids = mesh.events(after="0", job=id), []
    while True:
        event = next(events)
        ids.append(event.id)
        proxy.cut()
        if event.data["event"] == "finished":
            break
    assert len(ids) == len(set(ids)) >= 3, ids
    assert code(lambda: next(mesh.events(after="x"))) == "invalid_params"


async def is_alike(url: str, key: str, proxy: Proxy) -> None:
    async with AsyncMeshwork(url, key) as mesh:
        job = await mesh.run(type="osis", script='print("one"); print("two"); 6 * 7')
        assert job["output"] == 42
        lines = []
        async for line in mesh.logs(job["id"]):
            lines.append(line.data["line"])
            proxy.cut()
        assert lines == ["one", "two"], lines
        async for event in mesh.events(job=job["id"], after="0"):
            if event.data["event"] == "finished":
                break
        queued = [job["id"] async for job in mesh.job.iter(state="queued", queue="paged", limit=2)]
        assert len(queued) == 6, queued
        made = await mesh.flow.submit(flow="{flow: f, jobs: {a: {type: osis, script: '1'}}}")
        assert (await mesh.wait_flow(made["id"]))["status"] == "finished"
        proxy.losing = 1
        await mesh.job.create(type="async", script="1", id="alone")
        try:
            await mesh.run(type="osis", script='throw "boom"')
        except JobFailed as error:
            assert "boom" in str(error)
        jobs = await asyncio.gather(*(mesh.run(type="osis", script=f"{n} * 2") for n in range(10)))
        assert [job["output"] for job in jobs] == [n * 2 for n in range(10)]


def main(server: str, address: str, key: str) -> None:
    proxy = Proxy(address, server)
    with Meshwork(proxy.url, key) as mesh:
        assert key not in repr(mesh) + repr(vars(mesh))
        pages_cancels_and_retries(mesh, proxy)
        runs(mesh)
        waits_for_flows(mesh)
        follows(mesh, proxy)
    asyncio.run(is_alike(proxy.url, key, proxy))
    with Meshwork(proxy.url, "mwk_no.body", retries=0) as mesh:
        assert code(lambda: mesh.job.get(id="p-0")) == "invalid_credentials"
    assert proxy.lost == 4, proxy.lost
    print("all parts hold")


main(*sys.argv[1:])
