"""The topic that remembers the re-driven letters of one dead letter topic (`redriven_offsets`).

It has one partition and is compacted, so it never forgets, and stays small. Its records are written in the
transactions that write the re-driven records.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final, TypeVar

from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource

from barnabas.cli.dead_letters.redriven_offsets import JournalFormatError, JournalRecord, RedrivenOffsets
from barnabas.cli.dead_letters.session import Session
from barnabas.client.cluster.topics import Isolation, Topic
from barnabas.client.errors import BrokerUnavailableError, ConsumerError, UnknownTopicError, broker_error
from barnabas.protocol.client.admin_apis import CREATE_TOPICS, DESCRIBE_CONFIGS
from barnabas.protocol.counted import counted
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import TopicName, i8, i16, i32, milliseconds

PREFIX: Final = "barnabas.redriven."
TOPIC_NAME_LENGTH_MAX: Final = 249
CREATE_MS: Final = 30_000
PARTITION: Final = 0

_POLICY: Final = "cleanup.policy"
_COMPACT: Final = "compact"
_TOPIC: Final = 2
"""The type of the resource in DescribeConfigs."""
_BROKERS_DEFAULT: Final = -1

_Answer = TypeVar("_Answer")


class JournalError(ConsumerError):
    """The journal cannot be used; the message says the remedy."""


def journal_name(topic_name: str) -> str:
    """The name of a dead letter topic's journal. Raises `JournalError` if it would be too long."""
    name = PREFIX + topic_name
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        raise JournalError(
            f"The name of the journal, {PREFIX} and the name of the dead letter topic, has {len(name)} "
            f"characters, and a topic's name has at most {TOPIC_NAME_LENGTH_MAX}. Give the dead letter topic "
            "a shorter name"
        )
    return name


async def find_journal(session: Session, name: str) -> Topic | None:
    """The journal; None if nothing was re-driven yet. Raises `JournalError` if its settings lose records."""
    try:
        (topic,) = await session.topics.find([name])
    except UnknownTopicError:
        return None
    policy = await _cleanup_policy(session, name)
    if policy != _COMPACT or topic.partition_count != 1:
        partitions = counted(topic.partition_count, "partition")
        raise JournalError(
            f"The topic {name} remembers the re-driven letters. It has {partitions} "
            f"and {_POLICY}={policy}, and needs one partition and {_POLICY}={_COMPACT}: otherwise letters "
            "would be re-driven twice. Set the policy, or delete the topic if this command has not created it"
        )
    return topic


async def find_or_create_journal(session: Session, name: str) -> Topic:
    """Raises `JournalError`, and `BrokerError` without the right to create the topic."""
    topic = await find_journal(session, name)
    if topic is None:
        await _create(session, name)
        topic = await find_journal(session, name)
    if topic is None:
        raise BrokerUnavailableError(f"The topic {name} was created, and the broker does not show it yet")
    return topic


async def load(session: Session, journal: Topic | None, redriven: RedrivenOffsets) -> None:
    """Replay the journal. Raises `JournalError` for a record that is not of this program."""
    if journal is None:
        return
    (bounds,) = await session.bounds(journal, Isolation.READ_COMMITTED)
    if bounds.start_offset == bounds.end_offset:
        return
    ranges = [(bounds.start_offset, bounds.end_offset - 1)]
    async with aclosing(session.read(journal, PARTITION, ranges, Isolation.READ_COMMITTED)) as records:
        async for record in records:
            try:
                redriven.replay(JournalRecord(record.key or b"", record.value))
            except JournalFormatError as error:
                raise JournalError(
                    f"{journal.name}-{PARTITION} remembers the re-driven letters, and its record at offset "
                    f"{record.offset} cannot be used: {error}. Use the version of barnabas that wrote it; if "
                    "another program did, delete the record"
                ) from error


async def _create(session: Session, name: str) -> None:
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(1),
        replication_factor=i16(_BROKERS_DEFAULT),
        assignments=(),
        configs=(CreatableTopicConfig(name=_POLICY, value=_COMPACT),),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout=milliseconds(CREATE_MS))

    async def step() -> None:
        (result,) = (await session.cluster.ask(CREATE_TOPICS, request)).topics
        if result.error_code is not ErrorCode.topic_already_exists:
            _check(result.error_code, f"the topic {name}: {result.error_message}")

    await _with_retries(session, step)


async def _cleanup_policy(session: Session, name: str) -> str | None:
    resource = DescribeConfigsResource(
        resource_type=i8(_TOPIC), resource_name=name, configuration_keys=(_POLICY,)
    )
    request = DescribeConfigsRequest(resources=(resource,))

    async def step() -> str | None:
        (result,) = (await session.cluster.ask(DESCRIBE_CONFIGS, request)).results
        _check(result.error_code, f"the settings of {name}")
        return next((config.value for config in result.configs if config.name == _POLICY), None)

    return await _with_retries(session, step)


async def _with_retries(session: Session, step: Callable[[], Awaitable[_Answer]]) -> _Answer:
    """The result of `step`, which is called again while it raises `BrokerUnavailableError`."""
    patience = session.retries.patience()
    while True:
        try:
            return await step()
        except BrokerUnavailableError as error:
            await patience.pause(error)


def _check(code: ErrorCode, subject: str) -> None:
    if code is ErrorCode.none:
        return
    if code.retriable:
        raise BrokerUnavailableError(f"{code.name}: {subject}")
    raise broker_error(code, subject)
