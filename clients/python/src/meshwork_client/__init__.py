"""Client of the Meshwork API: `Meshwork` for threads, `AsyncMeshwork` for asyncio."""
from . import types
from .client import AsyncMeshwork, Meshwork
from .protocol import FlowFailed, JobFailed, MeshworkError, StreamEvent

__all__ = ["AsyncMeshwork", "FlowFailed", "JobFailed", "Meshwork", "MeshworkError", "StreamEvent", "types"]
