"""How far a restore into one cluster is: `restore-<cluster id>.json`, version 1, beside the manifest (pure).

It tells the topics that the restore made from those that were there before, and where its records begin in
them. How many records have arrived is not in here: the target's own log says that, and cannot be wrong. Only
that all have is noted, for then they may be deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.pipeline.export.json_file import decode, encode

VERSION: Final = 1

BEGUN: Final = "begun"
ARRIVED: Final = "arrived"
"""Records and groups are as they are to be. From here on the target may delete records by its settings, and
groups may go on: neither is looked at again."""
COMPLETE: Final = "complete"


@dataclass(frozen=True, slots=True)
class RestoredTopic:
    """One topic of the target."""

    name: str
    is_ours: bool
    """Whether the restore makes it: then its settings are the restore's to set."""
    topic_id: str | None
    """None before it was made."""
    begin_offsets: tuple[int, ...]
    """By partition, the offset of the target from which on everything is the restore's."""


@dataclass(frozen=True, slots=True)
class RestoreState:
    """A restore that has begun."""

    progress: str
    """One of `BEGUN`, `ARRIVED`, `COMPLETE`."""
    topics: tuple[RestoredTopic, ...]
    notes: tuple[str, ...] = ()
    """What there is to tell of the records and groups once they have arrived."""

    def __post_init__(self) -> None:
        if self.progress not in (BEGUN, ARRIVED, COMPLETE):
            raise ValueError(self.progress)


def file_name(cluster_id: str) -> str:
    """Of the state of a restore into this cluster."""
    return f"restore-{cluster_id or 'unknown'}.json"


def encode_state(state: RestoreState) -> str:
    """The file's content."""
    return encode(state, VERSION)


def decode_state(text: str, path: str) -> RestoreState:
    """The state from its file. Raises `PipelineError`, which names the file, for any other content."""
    return decode(RestoreState, text, path, VERSION)
