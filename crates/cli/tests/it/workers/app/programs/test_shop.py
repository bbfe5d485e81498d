import datetime as dt

import pytest
import shop
from meshwork import JobFailed, Permanent, Retry
from meshwork.testing import Enqueued, eager, perform


def test_a_call_runs_the_function():
    assert shop.send_mail("ada") == "sent to ada"


def test_perform_runs_a_task_as_a_worker_does():
    assert shop.send_mail.perform("ada", at=dt.date(2026, 2, 1)) == "sent to ada"
    done = perform(shop.order.s(7), attempt=3)
    assert done.result == "order 7, attempt 3"
    assert (done.log, done.progress) == ("runs order\n", (0.5, "half"))
    assert done.children == [Enqueued("test.1", "send_mail", {"to": "ada"})]
    assert perform(shop.shout.si("x")).result == "X"
    with pytest.raises(Permanent, match="no such order"):
        shop.order.perform(-1)
    with pytest.raises(TypeError):
        shop.order.perform("seven")


def test_jobs_are_enqueued_and_run(meshwork_store):
    shop.sent.clear()
    shop.place_order(7)
    job = meshwork_store.assert_enqueued(shop.order, 7)
    assert job.arguments == {"number": 7}
    meshwork_store.assert_enqueued(shop.send_mail)
    meshwork_store.refute_enqueued(shop.order, 8)
    with pytest.raises(AssertionError, match="open jobs: {\"number\": 7}"):
        meshwork_store.assert_enqueued(shop.order, 8)
    with pytest.raises(AssertionError, match="has the arguments"):
        meshwork_store.refute_enqueued(shop.order, 7)
    done = meshwork_store.drain()
    assert (done.finished, done.delayed, done.failed) == (2, 1, 0)
    assert shop.sent == ["bob"]
    meshwork_store.advance(dt.timedelta(minutes=10))
    # The order, and its child.
    assert meshwork_store.drain().finished == 4
    assert shop.sent == ["bob", "ada"]


def test_retries_wait_for_the_clock(meshwork_store):
    job = shop.send_mail.enqueue("nobody")
    for _ in range(2):
        assert meshwork_store.drain().delayed == 1
        meshwork_store.advance(60)
    assert meshwork_store.drain().failed == 1
    with pytest.raises(JobFailed, match="no such user"):
        job.result(1)


def test_each_test_has_a_store_of_its_own(meshwork_store):
    assert meshwork_store.enqueued(shop.send_mail) == []
    assert meshwork_store.drain().finished == 0


def test_eager_jobs_run_in_the_call():
    with eager(shop.app):
        assert shop.send_mail.call("eve") == "sent to eve"
        assert shop.order.enqueue(1).result(1) == "order 1, attempt 1"
        with pytest.raises(JobFailed, match="no such order"):
            shop.order.call(-1)
    with pytest.raises(Retry):
        shop.send_mail("nobody")
