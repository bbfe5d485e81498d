"""Client of the Meshwork API: `Meshwork` for threads, `AsyncMeshwork` for asyncio."""
from . import types
from .client import AsyncMeshwork, Meshwork
from .protocol import JobFailed, MeshworkError

__all__ = ["AsyncMeshwork", "JobFailed", "Meshwork", "MeshworkError", "types"]
