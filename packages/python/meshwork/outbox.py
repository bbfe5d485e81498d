"""Jobs in transactions of a database: a row that exists when the transaction commits. `meshwork outbox relay` moves rows to the
store (docs/outbox.md).

    with psycopg.connect() as connection:
        connection.execute("INSERT INTO orders …")
        outbox.enqueue(connection, pay.s(order))
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Any, Optional

from ._flow import Signature

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,39}")


def enqueue(connection: Any, call: "Signature[Any]", *, schema: Optional[str] = None) -> str:
    """Writes ``task.s(…)`` as a row, in the transaction of the connection, and returns the id of the job.

    ``connection`` is a connection or cursor of psycopg, psycopg2 or sqlite3, a session or connection of SQLAlchemy, or
    Django's ``django.db.connection``. ``schema`` is that of the outbox (default: the search path).
    """
    id, statements = _statements(call, schema, _dialect(connection))
    for sql, values in statements:
        _execute(connection, sql, values)
    return id


async def aenqueue(connection: Any, call: "Signature[Any]", *, schema: Optional[str] = None) -> str:
    """Does the same for an async connection: of psycopg, or a session or connection of SQLAlchemy."""
    id, statements = _statements(call, schema, _dialect(connection))
    for sql, values in statements:
        await _execute(connection, sql, values)
    return id


def _statements(
    call: "Signature[Any]", schema: Optional[str], dialect: str
) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    """Returns the id, and statements with the place ``%s`` for each value."""
    if schema is not None and not _SCHEMA.fullmatch(schema):
        raise ValueError(f"schema {schema!r}: 1 to 40 of a-z, 0-9 and _, not beginning with a digit")
    spec = json.loads(call.spec())
    id = spec.pop("id", None) or str(uuid.uuid4())
    table = "meshwork_outbox" if schema is None else f"{schema}.meshwork_outbox"
    if dialect == "sqlite" and schema is not None:
        raise ValueError("schema: SQLite has none")
    insert = f"INSERT INTO {table} (id, job) VALUES (%s, %s) ON CONFLICT (id) DO NOTHING"
    statements: list[tuple[str, tuple[str, ...]]] = [(insert, (id, json.dumps({"spec": spec})))]
    if dialect == "postgresql":
        # Wakes relays at the commit.
        channel = "meshwork_outbox" if schema is None else f"meshwork_outbox_{schema}"
        statements.append(("SELECT pg_notify(%s, '')", (channel,)))
    return id, statements


def _package(connection: Any) -> str:
    """Returns the package of the connection's class, or of one that it inherits from."""
    known = {"sqlalchemy", "django", "sqlite3", "psycopg", "psycopg2"}
    packages = [kind.__module__.partition(".")[0] for kind in type(connection).__mro__]
    found = next((package for package in packages if package in known), None)
    if found is None:
        raise TypeError(
            f"{type(connection).__name__} is no connection of psycopg, psycopg2, sqlite3, SQLAlchemy or Django, nor a cursor or "
            "session of one"
        )
    return found


def _dialect(connection: Any) -> str:
    package = _package(connection)
    if package == "sqlalchemy":
        bind = connection.get_bind() if hasattr(connection, "get_bind") else connection
        return str(bind.dialect.name)
    if package == "django":
        return str(connection.vendor)
    return "sqlite" if package == "sqlite3" else "postgresql"


def _execute(connection: Any, sql: str, values: tuple[str, ...]) -> Any:
    package = _package(connection)
    if package == "sqlalchemy":
        from sqlalchemy import text

        names = [f"v{at}" for at in range(len(values))]
        for name in names:
            sql = sql.replace("%s", f":{name}", 1)
        return connection.execute(text(sql), dict(zip(names, values)))
    if package == "sqlite3":
        return connection.execute(sql.replace("%s", "?"), values)
    if package in ("django", "psycopg2") and not hasattr(connection, "execute"):
        with connection.cursor() as cursor:
            return cursor.execute(sql, values)
    return connection.execute(sql, values)
