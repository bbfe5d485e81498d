"""Chains, groups, chords, batches and limits."""

import os
import time

from meshwork import App, BatchEnd, Context, JobFailed, MeshworkError, Permanent, chain, chord, group

app = App(os.environ.get("REDIS_URL") or "dir:" + os.environ["MESHWORK_DATA"])


@app.task
def add(a: int, b: int = 1) -> int:
    return a + b


@app.task
def total(numbers: list[int], factor: int = 1) -> int:
    return sum(numbers) * factor


@app.task
def fails(a: int = 0) -> int:
    raise Permanent("no stock")


@app.task
def alone() -> str:
    return "alone"


@app.task
def joined(*texts: str) -> str:
    return " ".join(texts)


@app.batch_done
def noted(end: BatchEnd, mark: str = "batch") -> None:
    with open(mark, "w") as file:
        file.write(f"{end.why} {end.total} {end.succeeded} {end.failed}")


@app.task(concurrency=1)
def one_at_a_time() -> None:
    os.mkdir("running")
    os.rmdir("running")


@app.task
def sees(ctx: Context) -> list:
    return ["batch_end" in dir(ctx), ctx.input]


def read(mark: str) -> str:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            with open(mark) as file:
                text = file.read()
            if text:
                return text
        except FileNotFoundError:
            pass
    raise SystemExit(f"{mark} was not written")


def main() -> None:
    # The result of a step is the first free argument of the next one.
    assert chain(add.s(1), add.s(10), add.s(b=100)).enqueue().result(30) == 112
    assert (add.s(1) | add.s()).enqueue().result(30) == 3
    assert chain(add.s(1), alone.si()).enqueue().result(30) == "alone"
    assert group(add.s(n) for n in range(5)).enqueue().results(30) == [1, 2, 3, 4, 5]
    # The callback of a chord gets all results, in order.
    assert chord(group(add.s(n) for n in range(20)), total.s(factor=2)).enqueue().result(30) == 420
    assert chord([add.s(1), chain(add.s(2), add.s())], total.s()).enqueue().result(30) == 6
    fan = chain(add.s(1), group(add.s(10), add.s(20)), total.s(), add.s())
    assert fan.enqueue().result(30) == 35
    assert chain(add.s(1), group(add.s(10), add.s(20))).enqueue().results(30) == [12, 22]

    # A failure ends the steps behind it, and names the job.
    for flow in [chain(fails.s(), add.s()), chord(group(add.s(1), fails.s()), total.s())]:
        job = flow.enqueue()
        try:
            job.result(30)
            raise SystemExit("it did not fail")
        except JobFailed as error:
            assert job.job()["attempts"] == 0, job.job()
            assert "fail" in str(error) or "prerequisite" in str(error), error
    # Options are those of the jobs; one that is to go on takes what there is.
    goes_on = chain(fails.s(), add.s().options(on_failure="continue", tags=["late"]))
    try:
        goes_on.enqueue().result(30)
        raise SystemExit("there was a result")
    except JobFailed as error:
        assert "no result" in str(error), error
    # A step without a place for the result is refused before anything is enqueued.
    for wrong in [chain(add.s(1), alone.s()), chain(add.s(1), add.s(1, 2))]:
        try:
            wrong.enqueue()
            raise SystemExit("it was not refused")
        except TypeError as error:
            assert "alone" in str(error) or "too many" in str(error), error
    try:
        group(add.s(n) for n in range(1001)).enqueue()
        raise SystemExit("it was not refused")
    except MeshworkError as error:
        assert "1000 jobs" in str(error), error

    with app.batch("sums", on_success=noted.s("success"), on_failure=noted.s("failure")) as batch:
        batch.add(add.s(n) for n in range(1500))
        handles = batch.add(add.s(1), add.s(2))
    assert [handle.result(30) for handle in handles] == [2, 3]
    assert read("batch") == "done 1502 1502 0"
    assert read("success") == "success 1502 1502 0"
    assert batch.status()["state"] == "succeeded"
    try:
        with app.batch("broken", on_done=noted.s("never")) as batch:
            batch.add(add.options(delay="1h").s(1))
            raise ValueError("stop")
    except ValueError:
        pass
    assert batch.status()["cancelled"] == "cancelled: ValueError: stop", batch.status()
    with app.batch("failing", on_done=noted.s("failing")) as batch:
        batch.add(fails.s(), add.s(1))
    assert read("failing") == "done 2 1 1"

    # One at a time, on all workers together: the second mkdir would fail.
    for job in one_at_a_time.enqueue_many([()] * 30):
        job.result(30)
    print("done")


if __name__ == "__main__":
    main()
