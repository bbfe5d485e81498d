"""Plugin for pytest: ``meshwork_store`` is a store in memory for the app that the setting ``meshwork_app`` names."""

from __future__ import annotations

from typing import Iterator

import pytest

from ._app import App
from ._child import load
from .testing import Store


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("meshwork_app", "app of the fixture meshwork_store, as shop.tasks:app")


@pytest.fixture
def meshwork_app(request: pytest.FixtureRequest) -> App:
    """The app under test: that of the setting ``meshwork_app``, or of a fixture of this name in conftest.py."""
    target = request.config.getini("meshwork_app")
    if not target:
        pytest.fail("meshwork: name the app under test in pytest's settings: meshwork_app = shop.tasks:app")
    return load(target)


@pytest.fixture
def meshwork_store(meshwork_app: App) -> Iterator[Store]:
    """A store in memory, which the app uses during the test."""
    with Store(meshwork_app) as store:
        yield store
