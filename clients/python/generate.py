"""Writes types.py and methods.py of the client from the document of the API. The build of the package runs it.

    python generate.py [openapi.json]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# In a source package, the document is beside this file.
DOCUMENTS = [HERE / "openapi.json", HERE.parent.parent / "docs" / "openapi.json"]
FOLDER = HERE / "src" / "meshwork_client"
HEADER = "# Made from the document of the API by generate.py. Do not edit."

START = '''
"""Methods of the API, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Unpack

from . import types


@dataclass(frozen=True)
class Route:
    """Request of a method: `keyed` if it takes an idempotency key, `waits` if it can wait, `items` of a page."""

    verb: str
    path: str
    in_path: tuple[str, ...] = ()
    keyed: bool = False
    waits: bool = False
    items: str = ""


class Caller(Protocol):
    """Calls methods by name."""

    def call(self, name: str, params: Any, idempotency_key: str | None = None) -> Any: ...

    def iterate(self, name: str, params: Any) -> Any: ...
'''

CLASS = '''

class {prefix}{name}Methods:
    """{purpose}"""

    def __init__(self, caller: Caller) -> None:
'''


def name_of(schema):
    return schema.get("$ref", "").removeprefix("#/components/schemas/")


class Method:
    """A method, as the document describes it."""

    def __init__(self, document, path, verb, operation):
        schemas = document["components"]["schemas"]
        self.id = operation["operationId"]
        self.object, self.name = self.id.split(".")
        self.summary, self.verb, self.path = operation["summary"], verb.upper(), path
        params = name_of(operation["x-params"])
        self.params = "" if params == "NoParams" else params
        fields = schemas[self.params].get("properties", {}) if self.params else {}
        success = next(it for status, it in operation["responses"].items() if status != "default")
        self.result = name_of(success["content"]["application/json"]["schema"])
        places = [(it["in"], it["name"]) for it in operation["parameters"]]
        self.in_path = [name for place, name in places if place == "path"]
        self.keyed = ("header", "Idempotency-Key") in places
        self.waits = "wait" in fields
        page = schemas[self.result].get("properties", {}) if "cursor" in fields else {}
        lists = ((field, name_of(it.get("items") or {})) for field, it in sorted(page.items()))
        self.items, self.item = next((it for it in lists if it[1]), ("", ""))

    def route(self):
        parts = [f'"{self.verb}"', f'"{self.path}"']
        if self.in_path:
            parts.append("in_path=(" + " ".join(f'"{it}",' for it in self.in_path) + ")")
        parts += [f"{name}=True" for name in ("keyed", "waits") if getattr(self, name)]
        if self.items:
            parts.append(f'items="{self.items}"')
        return f"Route({', '.join(parts)})"

    def stub(self, is_async):
        define, call = ("async def", "await ") if is_async else ("def", "")
        params = f", **params: Unpack[types.{self.params}]" if self.params else ""
        given = "params" if self.params else "{}"
        key = ", *, idempotency_key: str | None = None" if self.keyed else ""
        key_given = ", idempotency_key" if self.keyed else ""
        text = f'''
    {define} {self.name}(self{key}{params}) -> types.{self.result}:
        """{self.summary}."""
        return {call}self._caller.call("{self.id}", {given}{key_given})
'''
        if not self.items:
            return text
        # A list has the short name.
        name = "iter" if self.name == "list" else f"iter_{self.name}"
        iterator = "AsyncIterator" if is_async else "Iterator"
        return text + f'''
    def {name}(self{params}) -> {iterator}[types.{self.item}]:
        """Iterate over the items of all pages of `{self.name}`."""
        return self._caller.iterate("{self.id}", {given})
'''


def methods_of(document):
    found = [
        Method(document, path, verb, operation)
        for path, verbs in document["paths"].items()
        for verb, operation in verbs.items()
        # Streams are no methods.
        if not operation.get("x-stream")
    ]
    return sorted(found, key=lambda method: method.id)


def methods_text(methods):
    text = HEADER + START + "\n\nROUTES: dict[str, Route] = {\n"
    text += "".join(f'    "{it.id}": {it.route()},\n' for it in methods) + "}\n"
    objects = list(dict.fromkeys(it.object for it in methods))
    for is_async in (False, True):
        prefix = "Async" if is_async else ""
        for name in objects:
            purpose = f"Methods of the object `{name}`."
            text += CLASS.format(prefix=prefix, name=name.capitalize(), purpose=purpose)
            text += "        self._caller = caller\n"
            text += "".join(it.stub(is_async) for it in methods if it.object == name)
        text += CLASS.format(prefix=prefix, name="", purpose="All methods, by object.")
        for name in objects:
            text += f"        self.{name} = {prefix}{name.capitalize()}Methods(caller)\n"
    return text


def opened(value):
    """Returns schemas whose objects may have further fields: the types of closed ones need a package."""
    if isinstance(value, dict):
        closed = ("additionalProperties", False)
        return {name: opened(it) for name, it in value.items() if (name, it) != closed}
    return [opened(it) for it in value] if isinstance(value, list) else value


def write_types(document, output):
    options = "--input-file-type openapi --openapi-scopes schemas --output-model-type typing.TypedDict".split()
    options += "--target-python-version 3.11 --use-standard-collections --use-union-operator".split()
    options += "--use-schema-description --use-field-description --formatters builtin".split()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "openapi.json")
        source.write_text(json.dumps(opened(document)))
        command = [sys.executable, "-m", "datamodel_code_generator", *options]
        command += ["--custom-file-header", HEADER, "--input", str(source), "--output", str(output)]
        subprocess.run(command, check=True)


def generate(document_path=None):
    document_path = document_path or next(path for path in DOCUMENTS if path.exists())
    document = json.loads(Path(document_path).read_text())
    write_types(document, FOLDER / "types.py")
    (FOLDER / "methods.py").write_text(methods_text(methods_of(document)))


if __name__ == "__main__":
    generate(*sys.argv[1:2])
