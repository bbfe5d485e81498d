"""Rows of an outbox in transactions of psycopg, SQLAlchemy, Django and sqlite3."""

import asyncio
import os
import sqlite3

import django
import psycopg
import sqlalchemy
from django.conf import settings
from meshwork import App, outbox
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

app = App(os.environ["REDIS_URL"])
DATABASE = os.environ["DATABASE_URL"]
SCHEMA = "tasks_in_python"


@app.task(retries=2, timeout="90s")
def pay(order: int, how: str = "card") -> str:
    return f"paid {order} by {how}"


def with_psycopg(number: int, commit: bool) -> str:
    with psycopg.connect(DATABASE) as connection:
        id = outbox.enqueue(connection, pay.s(number), schema=SCHEMA)
        outbox.enqueue(connection.cursor(), pay.options(id=f"cursor-{number}-{commit}").s(number), schema=SCHEMA)
        if not commit:
            connection.rollback()
    return id


def with_sqlalchemy(number: int, commit: bool) -> str:
    engine = sqlalchemy.create_engine(DATABASE.replace("postgres://", "postgresql+psycopg://"))
    with Session(engine) as session:
        id = outbox.enqueue(session, pay.s(number, how="cash"), schema=SCHEMA)
        session.commit() if commit else session.rollback()
    with engine.connect() as connection, connection.begin() as transaction:
        outbox.enqueue(connection, pay.options(id=f"core-{number}-{commit}").s(number), schema=SCHEMA)
        transaction.commit() if commit else transaction.rollback()
    engine.dispose()
    return id


def with_async_sqlalchemy(number: int, commit: bool) -> str:
    async def write() -> str:
        engine = create_async_engine(DATABASE.replace("postgres://", "postgresql+psycopg://"))
        async with engine.connect() as connection:
            id = await outbox.aenqueue(connection, pay.s(number), schema=SCHEMA)
            await (connection.commit() if commit else connection.rollback())
        await engine.dispose()
        return id

    return asyncio.run(write())


def with_django(number: int, commit: bool) -> str:
    from django.db import connection, transaction

    try:
        with transaction.atomic():
            id = outbox.enqueue(connection, pay.s(number), schema=SCHEMA)
            if not commit:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    return id


def main() -> None:
    parts = sqlalchemy.make_url(DATABASE)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.database,
        "USER": parts.username,
        "PASSWORD": parts.password or "",
        "HOST": parts.host or parts.query.get("host", ""),
        "PORT": parts.port or "",
    }
    settings.configure(DATABASES={"default": database})
    django.setup()
    jobs = []
    for number, write in enumerate([with_psycopg, with_sqlalchemy, with_async_sqlalchemy, with_django]):
        how = "cash" if write is with_sqlalchemy else "card"
        jobs.append((write(number, True), f"paid {number} by {how}"))
        write(number, False)
    # A second call of the same id adds nothing.
    with psycopg.connect(DATABASE) as connection:
        for _ in range(2):
            outbox.enqueue(connection, pay.options(id="same").s(9), schema=SCHEMA)
    expected = {*(id for id, _ in jobs), "cursor-0-True", "core-1-True", "same"}
    with open("rows.txt", "w") as file:
        file.write("\n".join(sorted(expected)))
    with psycopg.connect(DATABASE) as connection:
        rows = connection.execute(f"SELECT id FROM {SCHEMA}.meshwork_outbox").fetchall()
        assert {id for (id,) in rows} == expected, rows

    local = sqlite3.connect(":memory:")
    local.execute("CREATE TABLE meshwork_outbox (id TEXT UNIQUE, job TEXT)")
    outbox.enqueue(local, pay.options(id="local").s(1))
    assert local.execute("SELECT id FROM meshwork_outbox").fetchall() == [("local",)]
    for wrong, why in [(object(), "object is no connection"), (local, "SQLite has none")]:
        try:
            outbox.enqueue(wrong, pay.s(1), schema="jobs")
            raise SystemExit("it was not refused")
        except (TypeError, ValueError) as error:
            assert why in str(error), error
    for id, _ in jobs:
        print(id)


if __name__ == "__main__":
    main()
