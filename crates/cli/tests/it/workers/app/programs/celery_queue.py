"""Tasks of a real Celery move to an app, with kills of the script that moves them."""

import os
import random
import signal
import subprocess
import sys
import time

from meshwork import App

SOURCE = os.environ.get("CELERY_URL", "")
app = App()


@app.task
def add(a: int, b: int = 1) -> int:
    return a + b


@app.task(name="shop.mail.send")
def send(to: str) -> str:
    return f"sent to {to}"


def move(*options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "meshwork.migrate_celery", "--from", SOURCE, "--app", "celery_queue:app", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def printed(*options: str) -> list[str]:
    output, errors = (done := move(*options)).communicate(timeout=60)
    assert done.returncode == 0, errors
    return output.splitlines()


def main() -> None:
    # The worker has neither.
    import celery
    import redis

    broker = celery.Celery(broker=SOURCE, backend=None)

    def old(*args, **kwargs):
        raise SystemExit("no worker of Celery runs")

    old_add, old_send, unknown = (broker.task(old, name=f"shop.{name}") for name in ["add", "mail.send", "unknown"])
    store = redis.Redis.from_url(SOURCE)
    first = old_add.delay(1, b=2)
    later = old_add.apply_async((5,), countdown=3600)
    limited = old_send.apply_async(("ada",), time_limit=90, priority=6, expires=3600)
    old_send.apply_async(("late",), expires=-1)
    unknown.delay()
    old_add.delay("one")
    (old_add.s(1) | old_add.s()).apply_async()
    old_add.apply_async((1,), link=old_add.s(2))
    store.lpush("celery", "no message")
    left = [
        "left 1: add(): argument a: expected a whole number, not 'one'",
        "left 1: it has callbacks",
        "left 1: it has chain",
        "left 1: it has expired",
        "left 1: it is no message of Celery's protocol 2: JSONDecodeError",
        "left 1: the app has no task shop.unknown",
    ]
    before = {key: store.dump(key) for key in store.keys()}
    assert printed("--dry-run") == ["would move 2 of add", "would move 1 of shop.mail.send", *left]
    assert before == {key: store.dump(key) for key in store.keys()}
    assert printed() == ["moved 2 of add", "moved 1 of shop.mail.send", *left]
    assert store.llen("celery") == 6 and not store.exists("meshwork:migrating:celery")
    assert printed() == left

    assert app.job(f"celery-{first.id}").result(30) == 3
    assert app.job(f"celery-{later.id}").state() == "delayed"
    mail = app.job(f"celery-{limited.id}")
    assert mail.result(30) == "sent to ada"
    assert mail.job()["priority"] == "low" and mail.job()["timeout"] == 90, mail.job()

    # Kills of the script lose nothing and double nothing, while Celery enqueues.
    store.flushdb()
    ids = [old_add.delay(n).id for n in range(500)]
    for _ in range(5):
        running = move()
        size = store.llen("celery")
        until = time.monotonic() + 60
        while store.llen("celery") > size - random.randint(10, 60) and running.poll() is None:
            assert time.monotonic() < until
        running.send_signal(signal.SIGKILL)
        running.communicate()
    ids.append(old_add.delay(7).id)
    printed()
    assert store.llen("celery") == 0 and not store.exists("meshwork:migrating:celery")
    results = [app.job(f"celery-{id}").result(60) for id in ids]
    assert results == [*(n + 1 for n in range(500)), 8]
    assert all(app.job(f"celery-{id}").job()["attempts"] == 1 for id in ids[::50])
    print("done")


if __name__ == "__main__":
    main()
