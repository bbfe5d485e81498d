"""Celery with Redis as broker and as store of results: the same verbs as the programs in Rust (peers/src/lib.rs).

Acknowledges late, so that no job is lost, and runs handlers in threads of one process. `work` and `latency` need no
other process to end: the worker of a latency ends when its stdin is closed.
"""

import json
import os
import resource
import subprocess
import sys
import threading
import time

try:
    import kombu.transport.redis  # Celery imports it only later
    import redis
    from celery import Celery, __version__, group
except ImportError as error:
    sys.exit(f"not installed for {sys.executable}: {error}")

PAYLOAD = "x" * 98
BATCH = 100
WARM_UP = 20
PACE = 0.005
LOOK = 0.002
# Longest wait for a result and for the end of the work, in seconds. The caller has a limit of its own.
PATIENCE = 240

URL = os.environ.get("REDIS_URL", "")
USAGE = "usage: enqueue-one JOBS | enqueue-bulk JOBS | work CONCURRENCY JOBS | latency SAMPLES"

app = Celery("peer", broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True,
    task_ignore_result=False,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    broker_connection_retry_on_startup=True,
)


class Starts:
    """Number of handlers that started, and the time of the first."""

    def __init__(self):
        self.lock = threading.Lock()
        self.count = 0
        self.first = None

    def add(self):
        now = time.monotonic_ns()
        with self.lock:
            self.first = self.first or now
            self.count += 1
        return now


starts = Starts()


@app.task(name="noop")
def noop(_payload):
    return starts.add()


def run_worker(concurrency):
    words = ["-q", "worker", "-P", "threads", "-c", str(concurrency), "-l", "ERROR"]
    app.worker_main(words)


def processor_time():
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def per_second(jobs, began):
    return [jobs * 1e9 / (time.monotonic_ns() - began)]


def enqueue_one(jobs):
    with app.producer_pool.acquire(block=True, timeout=PATIENCE) as producer:
        began = time.monotonic_ns()
        for _ in range(jobs):
            noop.apply_async((PAYLOAD,), producer=producer)
        return per_second(jobs, began)


def enqueue_bulk(jobs):
    began = time.monotonic_ns()
    for sent in range(0, jobs, BATCH):
        size = min(BATCH, jobs - sent)
        group(noop.s(PAYLOAD) for _ in range(size)).apply_async()
    return per_second(jobs, began)


def work(concurrency, jobs, finish):
    """Runs the worker in this thread, which is the main one, as its signals need. The end comes from another."""
    server = redis.Redis.from_url(URL)

    def is_done():
        is_empty = server.llen("celery") == 0 and server.hlen("unacked") == 0
        return starts.count >= jobs and is_empty and results() >= jobs

    def results():
        return sum(1 for _ in server.scan_iter("celery-task-meta-*", count=10_000))

    def watch():
        end = time.monotonic() + PATIENCE
        while starts.count < jobs and time.monotonic() < end:
            time.sleep(LOOK)
        handled = time.monotonic_ns()
        while not is_done():
            if time.monotonic() > end:
                print(f"{starts.count} of {jobs} jobs have started", file=sys.stderr, flush=True)
                os._exit(1)
            time.sleep(LOOK)
            handled = time.monotonic_ns()
        finish([jobs * 1e9 / (handled - starts.first)])

    threading.Thread(target=watch, daemon=True).start()
    run_worker(concurrency)


def latency(samples):
    words = [sys.executable, __file__, "worker"]
    worker = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    begun, known = [], []
    try:
        for sample in range(samples + WARM_UP):
            time.sleep(PACE)
            began = time.monotonic_ns()
            start = noop.delay(PAYLOAD).get(timeout=PATIENCE)
            if sample >= WARM_UP:
                known.append((time.monotonic_ns() - began) / 1e3)
                begun.append((start - began) / 1e3)
    finally:
        worker.stdin.close()
        worker.wait(timeout=PATIENCE)
    return percentiles(begun) + percentiles(known)


def percentiles(times):
    times = sorted(times)
    return [times[(len(times) - 1) * percent // 100] for percent in (50, 99)]


def end_with_stdin():
    sys.stdin.read()
    os._exit(0)


def positive(word):
    if not word.isdigit() or int(word) == 0:
        sys.exit(f"{word} is not a positive number")
    return int(word)


def main(words):
    if words == ["worker"]:
        threading.Thread(target=end_with_stdin, daemon=True).start()
        return run_worker(1)
    verb, numbers = words[:1], [positive(word) for word in words[1:]]
    verb = verb[0] if verb else ""
    expected = {"enqueue-one": 1, "enqueue-bulk": 1, "work": 2, "latency": 1}
    if expected.get(verb) != len(numbers):
        sys.exit(USAGE)
    if not URL:
        sys.exit("set REDIS_URL to the server's URL")
    figure = f"work-{numbers[0]}" if verb == "work" else verb
    before = processor_time()

    def finish(values):
        spent = (processor_time() - before) * 1e6 / numbers[-1]
        answer = {"figure": figure, "version": __version__, "values": values, "client_us": spent}
        print(json.dumps(answer), flush=True)
        os._exit(0)

    if verb == "work":
        return work(*numbers, finish)
    verbs = {"enqueue-one": enqueue_one, "enqueue-bulk": enqueue_bulk, "latency": latency}
    finish(verbs[verb](*numbers))


if __name__ == "__main__":
    main(sys.argv[1:])
