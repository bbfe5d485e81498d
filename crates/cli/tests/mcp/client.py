"""The Python SDK at a server for agents, as client.js."""

import asyncio
import contextlib
import json
import os
import sys

import jsonschema
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

given = json.loads(sys.argv[1])


@contextlib.asynccontextmanager
async def server():
    if "url" not in given:
        command, *args = given["command"]
        yield StdioServerParameters(command=command, args=args, env=dict(os.environ))
        return
    headers = {"authorization": f"Bearer {given['key']}"}
    async with create_mcp_http_client(headers=headers) as http:
        yield streamable_http_client(given["url"], http_client=http)


def faults(tools):
    found = []
    for tool in tools:
        try:
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            jsonschema.validators.validator_for(tool.input_schema)(tool.input_schema).is_valid({})
        except Exception as error:
            found.append(f"{tool.name}: {error}")
    return found


async def talk(client):
    tools = (await client.list_tools()).tools

    async def call(name, arguments, **options):
        result = await client.call_tool(name, arguments, **options)
        data = json.loads(result.content[0].text.split("\n")[2])
        return {"error": result.is_error, "data": data}

    created = await call("create_job", {"type": "osis", "script": "1", "id": "sdk-1"})
    found = await call("search_jobs", {"type": "osis"})
    why = await call("explain_job", {"id": "sdk-1"})
    missing = await call("get_job", {"id": "none"})
    cancelled = await call("cancel_job", {"id": "sdk-1"})
    refused = None
    try:
        await client.call_tool("delete_all", {})
    except Exception as error:
        refused = error.error.code
    progress = []

    async def on_progress(done, total, message):
        progress.append([done, message])
        if "half" in message:
            open(given["go_on"], "w").close()

    long = {"type": "python", "script": given["script"], "id": "sdk-2", "wait": 60}
    ended = await call("create_job", long, progress_callback=on_progress)
    job = {"type": "osis", "script": "1", "id": "sdk-3", "wait": 300}
    waits = asyncio.create_task(call("create_job", job))
    while (await call("get_job", {"id": "sdk-3"}))["error"]:
        pass
    waits.cancel()
    done = await asyncio.gather(waits, return_exceptions=True)
    many = await asyncio.gather(*(call("get_job", {"id": "sdk-3"}) for _ in range(200)))
    return {
        "server": client.server_info.name,
        "tools": [tool.name for tool in tools],
        "faults": faults(tools),
        "created": created, "found": found, "why": why, "missing": missing, "cancelled": cancelled, "refused": refused,
        "progress": progress, "ended": ended,
        "aborted": isinstance(done[0], asyncio.CancelledError),
        "many": sum(not it["error"] and it["data"]["id"] == "sdk-3" for it in many),
    }


async def main():
    async with server() as there, Client(there, mode=given["mode"]) as client:
        print(json.dumps(await talk(client)))


asyncio.run(main())
