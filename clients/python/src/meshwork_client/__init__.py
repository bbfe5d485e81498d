"""Client of the Meshwork API: `Meshwork` for threads, `AsyncMeshwork` for asyncio."""
from . import types
from .client import AsyncMeshwork, Meshwork
from .protocol import JobFailed, MeshworkError, StreamEvent

__all__ = ["AsyncMeshwork", "JobFailed", "Meshwork", "MeshworkError", "StreamEvent", "types"]
