"""An app under test."""

import datetime as dt

from meshwork import App, Context, Permanent, Retry, chain

app = App()
sent = []


@app.middleware
def noted(ctx, go_on):
    ctx.log(f"runs {ctx.task}")
    return go_on()


@app.task(retries=2, backoff="10s")
def send_mail(to: str, at: dt.date = dt.date(2026, 1, 1)) -> str:
    if to == "nobody":
        raise Retry("no such user", after=60)
    assert isinstance(at, dt.date)
    sent.append(to)
    return f"sent to {to}"


@app.task
async def order(number: int, ctx: Context) -> str:
    if number < 0:
        raise Permanent("no such order")
    ctx.progress(0.5, "half")
    ctx.add_child(send_mail, "ada")
    return f"order {number}, attempt {ctx.attempt}"


@app.task
def shout(text: str) -> str:
    return text.upper()


def place_order(number: int) -> None:
    order.options(delay="10m").enqueue(number)
    chain(send_mail.s("bob"), shout.s()).enqueue()
