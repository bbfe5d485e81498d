"""Calls the programs of docs/frameworks.md in Python."""

import importlib
import os

import shop
from meshwork.testing import Store


def with_django(store: Store) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    importlib.import_module("worker")
    from django.test import Client

    client = Client(raise_request_exception=False)
    assert client.get("/mails", {"to": "nobody"}, headers={"host": "localhost"}).status_code == 500
    store.refute_enqueued(shop.send_mail)
    assert client.get("/mails", {"to": "ada"}, headers={"host": "localhost"}).status_code == 202
    job = store.assert_enqueued(shop.send_mail, "ada")
    # The middleware of the worker.
    assert store.drain().finished == 1
    assert client.get(f"/mails/{job.id}", headers={"host": "localhost"}).json() == {"state": "finished"}


def with_fastapi(store: Store) -> None:
    from fast import api
    from fastapi.testclient import TestClient

    client = TestClient(api)
    answer = client.post("/mails", params={"to": "bob"})
    assert answer.status_code == 202, answer.text
    store.assert_enqueued(shop.send_mail, "bob")
    assert client.get(f"/mails/{answer.json()['job']}").json() == {"state": "queued"}


def with_flask(store: Store) -> None:
    from flasked import web

    client = web.test_client()
    answer = client.post("/mails/eve")
    assert answer.status_code == 202
    store.assert_enqueued(shop.send_mail, "eve")
    assert client.get(f"/mails/{answer.json['job']}").json == {"state": "queued"}


for test in [with_django, with_fastapi, with_flask]:
    with Store(shop.app) as store:
        test(store)
print("done")
