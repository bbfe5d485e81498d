"""An app whose jobs are those of a context."""

import os

from meshwork import App, Context, MeshworkError, chain, group

URL = os.environ.get("REDIS_URL") or "dir:" + os.environ["MESHWORK_DATA"]
app = App(URL, context=1)


@app.task
def add(a: int, b: int = 1) -> int:
    return a + b


@app.task
def total(numbers: list[int], ctx: Context) -> dict:
    return {"sum": sum(numbers), "caller": ctx.caller}


if __name__ == "__main__":
    job = add.enqueue(2, b=3)
    assert job.id.endswith("job:1:1"), job.id
    assert job.result(30) == 5 and job.state() == "finished"
    # A number is a job of the actor.
    assert app.job("1").result(30) == 5
    assert add.options(id="77").call(1) == 2
    last = chain(group(add.s(n) for n in range(3)), total.s()).enqueue()
    assert last.result(30) == {"sum": 6, "caller": "1"}
    bob = App(URL, context=1, actor_key="bob.key")
    try:
        bob.task(add.function).enqueue(1)
        raise SystemExit("bob was not refused")
    except MeshworkError as error:
        assert "actor 2" in str(error), error
    for context, key, why in [(9, None, "context 9"), (1, "none.key", "none.key")]:
        try:
            App(URL, context=context, actor_key=key).job("1").state()
            raise SystemExit(f"{why} was not refused")
        except MeshworkError as error:
            assert why in str(error), error
    print("done")
