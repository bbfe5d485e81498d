"""Uses the client that openrpcclientgenerator has made of the OpenRPC document."""

import asyncio
import sys

from jsonrpcobjects.errors import ServerError
from meshwork_http_client.client import MeshworkClient


async def main(address, key):
    mesh = MeshworkClient({"authorization": f"Bearer {key}"}, f"http://{address}/rpc")
    made = await mesh.job.create(type="osis", script="6 * 7", id="generated", delay="1h", tags=["mine"])
    assert made.id == "generated", made
    job = await mesh.job.get(id="generated")
    assert (job.status, job.tags) == ("dispatched", ["mine"]), job
    page = await mesh.job.list(tag="mine")
    assert [job.id for job in page.jobs] == ["generated"], page
    cancelled = await mesh.job.cancel(id="generated")
    assert cancelled.id == "generated", cancelled
    job = await mesh.job.get(id="generated")
    assert job.status == "error", job
    try:
        await mesh.job.get(id="another")
        raise AssertionError("there is a job")
    except ServerError as error:
        assert error.rpc_error.code == -32004, error


asyncio.run(main(*sys.argv[1:]))
print("all parts hold")
