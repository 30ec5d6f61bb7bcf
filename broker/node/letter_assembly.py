"""The dead letters of a broker, connected to its parts."""

from __future__ import annotations

from barnabas.broker.config.dead_letter_config import DeadLetterSettings
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.group_config import GroupConfigs
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import Deadlines
from barnabas.share.dead_letters.dead_letters import DeadLetters
from barnabas.share.dead_letters.letter_counts import LetterCounts
from barnabas.share.dead_letters.letter_parts import LetterParts
from barnabas.share.dead_letters.letter_topics import LetterTopics


def make_dead_letters(
    groups: GroupConfigs,
    effective: EffectiveConfig,
    metadata: Controller,
    logs: PartitionLogs,
    clock: Clock,
    deadlines: Deadlines,
) -> DeadLetters:
    """The writer of dead letters."""
    settings = DeadLetterSettings(groups, effective, metadata.image)
    topics = LetterTopics(settings, metadata)
    return DeadLetters(LetterParts(clock, deadlines, metadata.image, logs, topics, settings, LetterCounts()))
