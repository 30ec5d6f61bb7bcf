"""The log lines about the faults of batches, over a real log."""

from __future__ import annotations

from structlog.testing import capture_logs

from barnabas.protocol.records import Record, encode_records
from barnabas.share.partition.limits import PriorityLimits
from tests.share.leader.leading import leading
from tests.storage.log_building import NOW_MS, validated


async def test_the_first_invalid_priority_of_a_partition_is_logged() -> None:
    parts = await leading()
    parts.limits = parts.limits._replace(priority=PriorityLimits("priority"))
    leader = parts.lead()
    for value in (b"3", b"urgent", b"12"):
        batch = encode_records([Record(0, NOW_MS, None, b"value", (("priority", value),))])
        parts.log.append_produced(batch, validated(batch), NOW_MS)
        with capture_logs() as lines:
            assert parts.fetch(leader).record_count == 1
        logged = [(one["log_level"], one["value"], one["group"]) for one in lines]
        assert logged == ([("warning", b"urgent", "group")] if value == b"urgent" else [])
    assert leader.counts.invalid_priorities == 2
