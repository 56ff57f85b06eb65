"""How several jobs are."""

import os
from collections.abc import Sequence

from nemotron.errors import SubmitError
from nemotron.job import JobState, Phase
from nemotron.jobs import Record


def states_of(records: Sequence[Record]) -> dict[str, JobState]:
    """By id. A backend that cannot be asked now says nothing about its jobs, or about those of others."""
    return {record.id: _state(record) for record in records}


def _state(record: Record) -> JobState:
    try:
        return record.executor(os.environ).state(record.submission)
    except SubmitError as error:
        return JobState(Phase.UNKNOWN, reason=str(error))
