"""Transaction markers, and the reports about those that cannot be written."""

from __future__ import annotations

from uuid import UUID

import pytest
from structlog.testing import capture_logs

from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.coordinator.transaction.transaction import Participant
from barnabas.protocol.identity import ProducerIdentity, SharePartitionKey, TopicNamePartition
from barnabas.runtime.completion import Completion
from tests.conformance.harness import Lab, open_lab

MARKER = TransactionMarker(ProducerIdentity(7, 0), 0, commit=True)


def broken(*_: object) -> Completion[None]:
    raise ZeroDivisionError


def write(lab: Lab, participant: Participant) -> tuple[Exception | None, list[object]]:
    """The error of the marker, and the exceptions in the log."""
    with capture_logs() as lines:
        written = lab.broker.transactions.markers.write_marker(participant, MARKER)
    assert written.done
    return written.error, [type(line["exc_info"]) for line in lines]


async def test_a_defect_at_a_share_partition_is_logged_and_is_the_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_lab() as lab:
        monkeypatch.setattr(lab.broker.groups.share, "reads", broken)
        topic_id = await lab.create_topic("t")
        error, logged = write(lab, SharePartitionKey("g", topic_id, 0))
        assert isinstance(error, ZeroDivisionError)
        assert logged == [ZeroDivisionError]


async def test_a_defect_at_committed_offsets_is_logged_and_is_the_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_lab() as lab:
        await lab.broker.internal_topics.ensure(OFFSETS_TOPIC)
        monkeypatch.setattr(lab.broker.groups, "end_transaction", broken)
        error, logged = write(lab, TopicNamePartition(OFFSETS_TOPIC, 0))
        assert isinstance(error, ZeroDivisionError)
        assert logged == [ZeroDivisionError]


async def test_a_deleted_topic_needs_no_marker() -> None:
    async with open_lab() as lab:
        for participant in (TopicNamePartition("gone", 0), SharePartitionKey("g", UUID(int=9), 0)):
            assert write(lab, participant) == (None, [])
