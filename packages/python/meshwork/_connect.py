"""The native module, in processes that are forked too."""

from __future__ import annotations

import os
from typing import Any, Optional

from . import _native

# A forked process has the state of its parent's generator of ids.
os.register_at_fork(after_in_child=_native.forked)


def connect(url: Optional[str], namespace: Optional[str]) -> Any:
    """Returns a client of the store. It connects with its first call."""
    return _native.Client(url, namespace)
