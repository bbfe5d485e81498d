"""Ten mistakes that a checker of types has to find; `cargo xtask packages` runs mypy on this file."""

from typing import Any

from meshwork import App, Context, Handle, JobFailed, Retry

app = App(1)  # mistake


@app.task
def add(a: int, b: int = 1) -> int:
    return a + b


@app.task(retries=3)
def greet(name: str) -> str:
    return f"Hello, {name}!"


@app.middleware
def around(ctx: Context, go_on: Any) -> Any:
    if ctx.attempt > "1":  # mistake
        raise Retry("later", after="soon")  # mistake
    return go_on()


def program() -> None:
    add.enqueue("1")  # mistake
    add.enqueue(1, c=2)  # mistake
    greet.enqueue()  # mistake
    total: str = add.call(1)  # mistake
    job: Handle[int] = greet.enqueue("Ada")  # mistake
    job.result("30")  # mistake
    try:
        print(total)
    except JobFailed as error:
        print(error.jobs)  # mistake
