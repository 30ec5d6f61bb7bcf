"""An internal topic is created, and its logs are opened, at the first use."""

from __future__ import annotations

import asyncio
import errno
import gc
from collections.abc import AsyncIterator, Callable

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.broker.internal_topics.internal_topics import (
    InternalTopicSpec,
    offsets_topic,
    share_state_topic,
    transactions_topic,
)
from barnabas.coordinator.metadata.image import Topic
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.coordinator.replay.interfaces import Stored, StoredRecord
from barnabas.storage.errors import LogClosed
from tests.broker.quick_reopening import reopen_at_once
from tests.conformance.harness import INTERNAL_PARTITIONS, Lab, open_lab, settle

RECORDS: list[tuple[bytes, bytes | None]] = [(b"a", b"1"), (b"b", None)]


@pytest.fixture
async def lab(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    reopen_at_once(monkeypatch)
    async with open_lab() as lab:
        yield lab


def internal_topic(lab: Lab) -> InternalTopic:
    return InternalTopic(offsets_topic(lab.broker.config), lab.broker.metadata, lab.broker.logs, lab.clock)


def state_topic(lab: Lab, partition_count: int) -> InternalTopic:
    spec = share_state_topic(lab.broker.config)._replace(partition_count=partition_count)
    return InternalTopic(spec, lab.broker.metadata, lab.broker.logs, lab.clock)


async def with_offline_log(lab: Lab) -> InternalTopic:
    """A topic that no coordinator of this broker uses; the log of its first partition is offline."""
    topic = state_topic(lab, 2)
    await topic.append(0, RECORDS)
    with lab.broken_disk("__share_group_state-0"):
        assert topic.append(0, RECORDS).error is not None
    return topic


def metadata_of(lab: Lab) -> Topic:
    return lab.broker.metadata.image.topics_by_name["__share_group_state"]


def stored(*records: tuple[bytes, bytes | None]) -> list[StoredRecord]:
    return [StoredRecord(offset, key, value) for offset, (key, value) in enumerate(records)]


async def with_long_log(lab: Lab, record_count: int) -> InternalTopic:
    """Each of its records, by number, is more than is read at a time."""
    topic = internal_topic(lab)
    for number in range(record_count):
        await topic.append(3, [(str(number).encode(), b"v" * 100_000)])
    return topic


def numbers(records: list[Stored]) -> list[int]:
    return [int(one.key or b"-1") for one in records if isinstance(one, StoredRecord)]


@pytest.mark.parametrize("spec_of", [offsets_topic, transactions_topic, share_state_topic])
def test_an_internal_topic_has_50_partitions_without_a_setting(
    spec_of: Callable[[BrokerConfig], InternalTopicSpec],
) -> None:
    assert spec_of(BrokerConfig({})).partition_count == 50


async def test_a_broker_without_groups_has_none_of_it(lab: Lab) -> None:
    assert "__consumer_offsets" not in lab.broker.metadata.image.topics_by_name
    assert await internal_topic(lab).read(0) == []
    assert "__consumer_offsets" not in lab.broker.metadata.image.topics_by_name


async def test_the_first_append_makes_it(lab: Lab) -> None:
    topic = internal_topic(lab)
    append = topic.append(3, RECORDS)
    assert not append.done
    await append
    created = lab.broker.metadata.image.topics_by_name["__consumer_offsets"]
    assert (len(created.partitions), created.is_internal) == (INTERNAL_PARTITIONS, True)
    assert await topic.read(3) == stored(*RECORDS)
    assert await topic.read(4) == []


async def test_appends_that_make_it_together_make_it_once(lab: Lab) -> None:
    topic = internal_topic(lab)
    appends = [topic.append(partition, RECORDS) for partition in (1, 2, 1)]
    for append in appends:
        await append
    assert await topic.read(1) == stored(*RECORDS * 2)
    assert await topic.read(2) == stored(*RECORDS)


async def test_an_append_is_refused_if_the_topic_is_made_with_other_partitions_meanwhile(lab: Lab) -> None:
    topic = internal_topic(lab)
    append = topic.append(1, RECORDS)
    await lab.broker.metadata.create_topics([NewTopic("__consumer_offsets", 3)])
    await topic.drained()
    assert isinstance(append.error, LogClosed)
    assert topic.partition_count == 3
    assert await topic.read(1) == []


async def test_each_append_tells_the_offset_of_its_first_record(lab: Lab) -> None:
    topic = internal_topic(lab)
    appends = [topic.append(3, RECORDS), topic.append(3, RECORDS)]
    await topic.drained()
    assert [append.result().base_offset for append in (*appends, topic.append(3, RECORDS))] == [0, 2, 4]


async def test_records_may_be_let_go_of(lab: Lab) -> None:
    topic = internal_topic(lab)
    topic.delete_before(3, 1)
    await topic.append(3, RECORDS)
    topic.delete_before(3, 1)
    await topic.drained()
    log = lab.broker.log_directory.find("__consumer_offsets", 3)
    assert log is not None
    assert log.recovery_point == 2, "the record in place of the deleted ones is safe"
    assert await topic.read(3) == stored(*RECORDS)[1:]


async def test_the_state_topic_of_share_groups_is_as_kafka_makes_it(lab: Lab) -> None:
    topic = state_topic(lab, 3)
    assert topic.partition_count == 3
    await topic.append(0, RECORDS)
    assert len(lab.broker.metadata.image.topics_by_name["__share_group_state"].partitions) == 3
    config = lab.broker.effective_config.topic_config("__share_group_state")
    assert (config.segment_bytes, config.retention_ms) == (100 << 20, -1)


async def test_later_appends_are_done_at_once(lab: Lab) -> None:
    topic = internal_topic(lab)
    await topic.append(3, RECORDS)
    assert topic.append(3, RECORDS).done


async def test_a_long_log_is_read_to_its_end(lab: Lab) -> None:
    topic = await with_long_log(lab, 25)
    assert numbers(await topic.read(3)) == list(range(25))


async def test_others_have_their_turn_while_a_long_log_is_read(lab: Lab) -> None:
    topic = await with_long_log(lab, 5)
    reading = asyncio.ensure_future(topic.read(3))
    turn_count = 0
    while not reading.done():
        await asyncio.sleep(0)
        turn_count += 1
    assert turn_count > 5
    assert numbers(await reading) == list(range(5))


async def test_a_read_includes_changes_made_meanwhile(lab: Lab) -> None:
    topic = await with_long_log(lab, 5)
    log = lab.broker.log_directory.find("__consumer_offsets", 3)
    assert log is not None
    reading = asyncio.ensure_future(topic.read(3))
    for _ in range(3):
        await asyncio.sleep(0)
    log.delete_records(4)
    await topic.append(3, [(b"5", b"")])
    found = numbers(await reading)
    assert 0 < found.index(4) < 4
    assert found == [*range(found.index(4)), 4, 5]


async def test_a_partition_beyond_the_last_has_nothing(lab: Lab) -> None:
    topic = internal_topic(lab)
    await topic.append(0, RECORDS)
    assert await topic.read(INTERNAL_PARTITIONS) == []


async def test_a_failure_is_in_the_completion(lab: Lab) -> None:
    topic = internal_topic(lab)
    await topic.append(0, RECORDS)
    lab.filesystem.write_error, lab.filesystem.failing_suffix = errno.EIO, ".log"
    assert topic.append(0, RECORDS).error is not None
    not_open_yet = topic.append(1, RECORDS)
    await settle()
    assert not_open_yet.error is not None
    lab.filesystem.write_error = None


async def test_an_append_to_an_offline_log_fails_and_is_not_repeated_after_reopening(lab: Lab) -> None:
    topic = await with_offline_log(lab)
    append = topic.append(0, RECORDS)
    await topic.drained()
    assert isinstance(append.error, LogClosed)
    assert lab.broker.logs.get(metadata_of(lab), 0) is not None, "opened for those who come next"
    assert await topic.read(0) == stored(*RECORDS)
    await topic.append(0, RECORDS)
    assert await topic.read(0) == stored(*RECORDS * 2)


async def test_any_caller_may_reopen_the_log(lab: Lab) -> None:
    topic = await with_offline_log(lab)
    append = topic.append(0, RECORDS)
    # The log serves again before the append has its turn.
    opened = asyncio.ensure_future(lab.broker.logs.open(metadata_of(lab), 0))
    await topic.drained()
    await opened
    assert isinstance(append.error, LogClosed)
    assert await topic.read(0) == stored(*RECORDS)


async def test_each_log_that_went_offline_is_remembered_apart(lab: Lab) -> None:
    topic = await with_offline_log(lab)
    for _ in range(2):
        with pytest.raises(LogClosed):
            await topic.append(0, RECORDS)
        with lab.broken_disk("__share_group_state-0"):
            assert topic.append(0, RECORDS).error is not None
    await topic.append(1, RECORDS)
    assert await topic.read(1) == stored(*RECORDS)
    assert await topic.read(0) == stored(*RECORDS)


async def test_deleting_unknown_records_does_nothing(lab: Lab) -> None:
    topic = internal_topic(lab)
    await topic.append(3, RECORDS)
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    topic.delete_before(3, 3)
    await topic.drained()
    gc.collect()
    assert complaints == []
    assert await topic.read(3) == stored(*RECORDS)


async def test_closing_waits_for_appends_under_way(lab: Lab) -> None:
    topic = internal_topic(lab)
    append = topic.append(0, RECORDS)
    await topic.drained()
    assert append.done
