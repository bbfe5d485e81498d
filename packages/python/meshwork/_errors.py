"""Errors of the client, and those by which a task decides about its job."""

from __future__ import annotations

from typing import Any, Optional


class MeshworkError(Exception):
    """A call to the store failed, or was refused."""


class JobExists(MeshworkError):
    """There is a job with this id: it stays as it is."""


class ResultTimeout(MeshworkError):
    """The job has not ended within the time given."""


class JobFailed(MeshworkError):
    """The job has ended without a result."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        super().__init__(job.get("error") or f"job {job.get('id')} is {job.get('state')}")


class JobCancelled(JobFailed):
    """The job was cancelled."""


class Verdict(Exception):
    """A decision of a task about its job."""

    verdict = "retry"
    after: Optional[float] = None


class Retry(Verdict):
    """Run the job again, after ``after`` seconds or else after its backoff, if a retry is left."""

    def __init__(self, message: str = "a retry is needed", *, after: Optional[float] = None) -> None:
        super().__init__(message)
        self.after = after


class Permanent(Verdict):
    """No retry would help: the job becomes a dead letter."""

    verdict = "permanent"


class Snooze(Verdict):
    """Run the job again after ``after`` seconds, without counting an attempt: at most 1,000 times and 7 days in total."""

    verdict = "snooze"

    def __init__(self, after: float) -> None:
        super().__init__(f"snoozed for {after} s")
        self.after = after


class Discard(Verdict):
    """End the job in error, without a dead letter."""

    verdict = "discard"
