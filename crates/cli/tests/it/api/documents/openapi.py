"""Uses the client that openapi-python-client has made of the OpenAPI document."""

import sys

from generated import AuthenticatedClient
from generated.api.job import job_cancel, job_create, job_get, job_list
from generated.models import JobCancelBody, JobCreateBody

address, key = sys.argv[1:]
client = AuthenticatedClient(base_url=f"http://{address}", token=key, raise_on_unexpected_status=True)
with client as mesh:
    body = JobCreateBody(type_="osis", script="6 * 7", id="generated", delay="1h", tags=["mine"])
    made = job_create.sync(client=mesh, body=body)
    assert made.id == "generated", made
    job = job_get.sync("generated", client=mesh)
    assert (job.status, job.tags) == ("dispatched", ["mine"]), job
    page = job_list.sync(client=mesh, tag="mine")
    assert [job.id for job in page.jobs] == ["generated"], page
    cancelled = job_cancel.sync("generated", client=mesh, body=JobCancelBody())
    assert cancelled.id == "generated", cancelled
    job = job_get.sync("generated", client=mesh)
    assert job.status == "error", job
    missing = job_get.sync("another", client=mesh)
    assert missing.code == "not_found", missing
print("all parts hold")
