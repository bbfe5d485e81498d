"""Values of tasks in JSON, by the annotations of their functions.

Dataclasses, named tuples, pydantic models, enums, dates, times, durations, ``Decimal``, ``UUID``, ``Path``, sets and tuples
have a form in JSON. A value that does not fit its annotation is refused.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import types
import typing
import uuid
from typing import Any, Union

_UNIONS = (Union, getattr(types, "UnionType", Union))
_TEXTS: dict[type, typing.Callable[[str], Any]] = {
    dt.datetime: dt.datetime.fromisoformat,
    dt.date: dt.date.fromisoformat,
    dt.time: dt.time.fromisoformat,
    decimal.Decimal: decimal.Decimal,
    uuid.UUID: uuid.UUID,
    pathlib.Path: pathlib.Path,
}


class WrongType(ValueError):
    """A value is not of its annotation, or has no form in JSON."""


def encode(value: Any) -> Any:
    """Returns the value as JSON has it."""
    if value is None or isinstance(value, (bool, str)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return encode(value.value)
    if isinstance(value, (int, float)):
        return value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath)):
        return str(value)
    if isinstance(value, collections.abc.Mapping):
        for key in value:
            if not isinstance(key, str):
                raise WrongType(f"a key of a dict is {_name(type(key))}: JSON has texts only")
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(item) for item in value]
    raise WrongType(f"{_name(type(value))} has no form in JSON: give a dataclass, a pydantic model, or plain values")


def decode(value: Any, kind: Any) -> Any:
    """Returns the value of an annotation from JSON."""
    if kind is Any or kind is typing_empty or isinstance(kind, (str, typing.TypeVar)):
        return value
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return decode(value, typing.get_args(kind)[0])
    if origin in _UNIONS:
        return _union(value, typing.get_args(kind))
    if origin is typing.Literal:
        if value in typing.get_args(kind):
            return value
        raise WrongType(f"expected one of {', '.join(map(repr, typing.get_args(kind)))}, not {value!r}")
    if origin is not None:
        return _generic(value, origin, typing.get_args(kind))
    if kind is None or kind is type(None):
        return _checked(value, value is None, "None")
    if not isinstance(kind, type):
        return value
    return _plain(value, kind)


class typing_empty:
    """No annotation."""


def _union(value: Any, kinds: tuple[Any, ...]) -> Any:
    reasons = []
    for kind in kinds:
        try:
            return decode(value, kind)
        except (ValueError, TypeError) as error:
            reasons.append(str(error))
    raise WrongType("; ".join(reasons))


def _generic(value: Any, origin: Any, kinds: tuple[Any, ...]) -> Any:
    if not isinstance(origin, type):
        return value
    if issubclass(origin, tuple):
        _checked(value, isinstance(value, list), "a list")
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            return tuple(_item(at, item, kinds[0]) for at, item in enumerate(value))
        _checked(value, len(value) == len(kinds), f"a list of {len(kinds)} items")
        return tuple(_item(at, item, kind) for at, (item, kind) in enumerate(zip(value, kinds)))
    if issubclass(origin, collections.abc.Mapping):
        _checked(value, isinstance(value, dict), "an object")
        return {key: _item(key, item, kinds[1]) for key, item in value.items()}
    if issubclass(origin, collections.abc.Collection):
        _checked(value, isinstance(value, list), "a list")
        items = [_item(at, item, kinds[0]) for at, item in enumerate(value)]
        return origin(items) if origin in (list, set, frozenset) else items
    return value


def _plain(value: Any, kind: type) -> Any:
    if kind is object:
        return value
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if dataclasses.is_dataclass(kind):
        return _dataclass(value, kind)
    if issubclass(kind, enum.Enum):
        return kind(value)
    if kind in _TEXTS:
        _checked(value, isinstance(value, str), "a text")
        return _TEXTS[kind](value)
    if kind is dt.timedelta:
        _checked(value, _is_number(value), "a number of seconds")
        return dt.timedelta(seconds=value)
    if kind is bool:
        return _checked(value, isinstance(value, bool), "true or false")
    if kind is int:
        return _checked(value, isinstance(value, int) and not isinstance(value, bool), "a whole number")
    if kind is float:
        return _checked(value, _is_number(value), "a number")
    if kind is str:
        return _checked(value, isinstance(value, str), "a text")
    if kind in (dict, list):
        return _checked(value, isinstance(value, kind), "an object" if kind is dict else "a list")
    if kind in (tuple, set, frozenset):
        return kind(_checked(value, isinstance(value, list), "a list"))
    return value


def _dataclass(value: Any, kind: Any) -> Any:
    _checked(value, isinstance(value, dict), f"an object with the fields of {kind.__name__}")
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    for name in value:
        if name not in fields:
            raise WrongType(f"{kind.__name__} has no field {name!r}")
    return kind(**{name: _item(name, item, hints.get(name, Any)) for name, item in value.items()})


def _item(place: Any, value: Any, kind: Any) -> Any:
    try:
        return decode(value, kind)
    except (ValueError, TypeError) as error:
        raise WrongType(f"{place}: {error}") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _checked(value: Any, fits: bool, expected: str) -> Any:
    if fits:
        return value
    raise WrongType(f"expected {expected}, not {value!r:.80}")


def _name(kind: type) -> str:
    return f"a value of the type {kind.__qualname__}"
