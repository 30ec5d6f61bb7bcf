"""The progress of a restore into one cluster: `restore-<cluster id>.json`, version 1. Pure.

The file stands beside the manifest. It has the topics, whether the restore created them, and the offsets at
which its records begin. It does not have the number of restored records: the target's log shows that. Only
the arrival of all records is noted, because the target may delete them from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.pipeline.export.json_file import decode, encode

VERSION: Final = 1

BEGUN: Final = "begun"
ARRIVED: Final = "arrived"
"""All records and groups are restored. From here on the target may delete records by its settings, and groups
may go on, so they are not checked again."""
COMPLETE: Final = "complete"


@dataclass(frozen=True, slots=True)
class RestoredTopic:
    """One topic of the target."""

    name: str
    is_ours: bool
    """Whether the restore creates it: then the restore sets its settings."""
    topic_id: str | None
    """None before it is created."""
    begin_offsets: tuple[int, ...]
    """By partition, the offset of the target at which the restore's records begin."""


@dataclass(frozen=True, slots=True)
class RestoreState:
    """A restore that has begun."""

    progress: str
    """One of `BEGUN`, `ARRIVED`, `COMPLETE`."""
    topics: tuple[RestoredTopic, ...]
    notes: tuple[str, ...] = ()
    """The notes about records and groups for the end of the restore."""

    def __post_init__(self) -> None:
        if self.progress not in (BEGUN, ARRIVED, COMPLETE):
            raise ValueError(self.progress)


def file_name(cluster_id: str) -> str:
    """The file with the state of a restore into this cluster."""
    return f"restore-{cluster_id or 'unknown'}.json"


def encode_state(state: RestoreState) -> str:
    """The file's content."""
    return encode(state, VERSION)


def decode_state(text: str, path: str) -> RestoreState:
    """The state from its file. Raises `PipelineError`, which names the file, for any other content."""
    return decode(RestoreState, text, path, VERSION, kind="the progress of a restore")
