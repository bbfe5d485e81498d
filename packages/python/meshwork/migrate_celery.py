"""Moves waiting tasks of a Celery queue on Redis to the store of an app.

    python -m meshwork.migrate_celery --from redis://127.0.0.1/0 --queue celery --app shop.tasks:app

Tasks keep their arguments, eta and time limit. The task of the app has the name of Celery's, or its last part. What has no
counterpart stays in the queue, and is listed. Each task has an id that follows from Celery's, and is removed from Celery's
queue before it can be enqueued: after a crash, a second call goes on. Celery's workers may run meanwhile.
"""

from __future__ import annotations

import argparse
import base64
import collections
import datetime as dt
import json
import sys
from typing import Any, Optional

from ._app import App
from ._child import load
from ._errors import JobExists, MeshworkError
from ._flow import Signature

#: Separator of the name of a queue and a priority, of kombu.
PRIORITY = "\x06\x16"
#: Priorities other than the first, 0.
STEPS = ("3", "6", "9")
#: Moves a message from a list to another one: KEYS[1] queue, KEYS[2] list of messages under way, ARGV[1] message. Returns 1, or 0
#: if it is gone.
TAKE = "if redis.call('LREM', KEYS[1], -1, ARGV[1]) == 0 then return 0 end redis.call('LPUSH', KEYS[2], ARGV[1]) return 1"
#: Moves a message back, to where workers take the next one.
RETURN = "if redis.call('LREM', KEYS[2], -1, ARGV[1]) == 1 then redis.call('RPUSH', KEYS[1], ARGV[1]) end"


class Left(Exception):
    """A message stays in the queue; the text is the reason."""


def call_of(app: App, text: bytes, now: dt.datetime, is_later: bool) -> "Signature[Any]":
    """Returns the call of a task that a message of Celery's protocol 2 has."""
    try:
        message = json.loads(text)
        headers, properties = message["headers"], message["properties"]
        if message.get("content-type") != "application/json" or message.get("content-encoding") != "utf-8":
            raise Left(f"its content is {message.get('content-type')}, not JSON")
        body = message["body"]
        if properties.get("body_encoding") == "base64":
            body = base64.b64decode(body)
        args, kwargs, embed = json.loads(body)
        name, id = headers["task"], headers["id"]
    except (ValueError, KeyError, TypeError) as error:
        raise Left(f"it is no message of Celery's protocol 2: {type(error).__name__}") from None
    task = app.tasks.get(name) or app.tasks.get(name.rpartition(".")[2])
    if task is None:
        raise Left(f"the app has no task {name}")
    parts = [part for part in ("callbacks", "errbacks", "chain", "chord") if embed.get(part)]
    if parts:
        raise Left(f"it has {' and '.join(parts)}")
    options: dict[str, Any] = {"id": f"celery-{id}"}
    if headers.get("eta"):
        options["at"] = _utc(headers["eta"]).isoformat()
    if headers.get("expires"):
        seconds = (_utc(headers["expires"]) - now).total_seconds()
        if seconds <= 0:
            raise Left("it has expired")
        options["start_timeout"] = seconds
    limit = (headers.get("timelimit") or [None])[0]
    if limit:
        options["timeout"] = limit
    if is_later:
        options["priority"] = "low"
    call = task.options(**options).si(*args, **kwargs)
    try:
        call.spec()
    except TypeError as error:
        raise Left(str(error)) from None
    return call


def _utc(text: str) -> dt.datetime:
    time = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return time if time.tzinfo else time.replace(tzinfo=dt.timezone.utc)


class Migration:
    """A queue of Celery, and the app that gets its tasks."""

    def __init__(self, redis: Any, queue: str, app: App, dry_run: bool = False) -> None:
        self._redis = redis
        self._queue = queue
        self._app = app
        self._dry_run = dry_run
        self._moving = f"meshwork:migrating:{queue}"
        self.moved: collections.Counter[str] = collections.Counter()
        self.left: collections.Counter[str] = collections.Counter()

    def run(self) -> None:
        """Moves the messages that wait now, the oldest first."""
        now = dt.datetime.now(dt.timezone.utc)
        if not self._dry_run:
            # Those of a call that was killed.
            for text in reversed(self._redis.lrange(self._moving, 0, -1)):
                try:
                    self._enqueue(call_of(self._app, text, now, False), text)
                except Left:
                    self._redis.eval(RETURN, 2, self._queue, self._moving, text)
        for step in ("", *STEPS):
            queue = f"{self._queue}{PRIORITY}{step}" if step else self._queue
            for text in self._messages(queue):
                try:
                    call = call_of(self._app, text, now, bool(step))
                except Left as why:
                    self.left[str(why)] += 1
                    continue
                if self._dry_run:
                    self.moved[call.task.name] += 1
                elif self._redis.eval(TAKE, 2, queue, self._moving, text):
                    self._enqueue(call, text)

    def _messages(self, queue: str) -> list[bytes]:
        """Returns the messages of a list from its end, where workers take them."""
        return list(reversed(self._redis.lrange(queue, 0, -1)))

    def _enqueue(self, call: "Signature[Any]", text: bytes) -> None:
        try:
            call.enqueue()
        except JobExists:
            pass  # A call that was killed has enqueued it.
        self._redis.lrem(self._moving, 1, text)
        self.moved[call.task.name] += 1


def main(arguments: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m meshwork.migrate_celery", description=__doc__.split("\n")[0])
    parser.add_argument("--from", dest="source", metavar="URL", required=True, help="Redis of Celery's broker")
    parser.add_argument("--queue", default="celery", help="queue of Celery [default: celery]")
    parser.add_argument("--app", required=True, metavar="MODULE:NAME", help="app that gets the tasks")
    parser.add_argument("--dry-run", action="store_true", help="count only, and change nothing")
    args = parser.parse_args(arguments)
    try:
        import redis
    except ImportError:
        sys.exit("the package redis is missing, which Celery uses for Redis: pip install redis")
    migration = Migration(redis.Redis.from_url(args.source), args.queue, load(args.app), args.dry_run)
    try:
        migration.run()
    except (redis.RedisError, MeshworkError) as error:
        sys.exit(f"{error}: nothing is lost; call this again")
    finally:
        for name, number in sorted(migration.moved.items()):
            print(f"{'would move' if args.dry_run else 'moved'} {number} of {name}")
        for why, number in sorted(migration.left.items()):
            print(f"left {number}: {why}")


if __name__ == "__main__":
    main()
