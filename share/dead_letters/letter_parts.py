"""The parts of a broker that the writers of its dead letters share."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import Deadlines
from barnabas.share.dead_letters.letter_counts import LetterCounts
from barnabas.share.dead_letters.letter_topics import LetterSettings, LetterTopics


@dataclass(frozen=True, slots=True)
class LetterParts:
    """The objects that the works of one broker share."""

    clock: Clock
    deadlines: Deadlines
    image: MetadataImage
    logs: PartitionLogs
    topics: LetterTopics
    settings: LetterSettings
    counts: LetterCounts
