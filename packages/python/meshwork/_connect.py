"""The native module, in processes that are forked too."""

from __future__ import annotations

import os
from typing import Any, Optional

from . import _native

# A forked process has the state of its parent's generator of ids.
os.register_at_fork(after_in_child=_native.forked)


def connect(url: Optional[str], namespace: Optional[str], context: Optional[int], actor_key: Optional[str]) -> Any:
    """Returns a client of the store. It connects with its first call."""
    of_context = None if context is None else (context, _key_file(actor_key))
    return _native.Client(url, namespace, of_context)


def _key_file(given: Optional[str]) -> str:
    """Returns the path of the key file of an actor, as the command finds it."""
    given = given or os.environ.get("MESHWORK_ACTOR_KEY")
    if given:
        return os.fspath(given)
    config = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification requires to ignore a relative path.
    if not os.path.isabs(config):
        config = os.path.expanduser("~/.config")
    return os.path.join(config, "meshwork", "actor.key")
