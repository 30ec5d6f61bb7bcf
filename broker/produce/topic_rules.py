"""A topic's rules for records that are produced at a given time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.record_batch import COMPRESSION_MASK
from barnabas.protocol.record_walk import RecordRules
from barnabas.storage.log_config import TimestampType

if TYPE_CHECKING:
    from barnabas.protocol.record_batch import BatchHeader
    from barnabas.storage.log_config import LogConfig

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1


class TopicRules(NamedTuple):
    """The settings of a topic and the rules that follow from them; returned by `rules_at`."""

    config: LogConfig
    now_ms: int
    """Wall time; the bounds of record timestamps are relative to it."""
    uncompressed: RecordRules
    compressed: RecordRules

    def of(self, header: BatchHeader) -> RecordRules:
        """The rules for the records of one batch."""
        return self.compressed if header.attributes & COMPRESSION_MASK else self.uncompressed


def rules_at(config: LogConfig, now_ms: int) -> TopicRules:
    """The rules of a topic with these settings."""
    times = None
    if config.message_timestamp_type is TimestampType.CREATE_TIME:
        latest_ms = now_ms + config.message_timestamp_after_max_ms
        times = now_ms - config.message_timestamp_before_max_ms, min(latest_ms, _INT64_MAX)
    keys_required = config.compact_enabled
    return TopicRules(
        config,
        now_ms,
        RecordRules(keys_required, times, _INT32_MAX),
        RecordRules(keys_required, times, config.max_decompressed_message_bytes),
    )
