"""Ranges of offsets that a group has committed individually, in `barnabas ranges` and in Kafka's tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.__main__ import main
from barnabas.cli.exit_codes import ExitCode
from barnabas.client import Consumer, ConsumerRecord, Producer, TopicPartition
from barnabas.protocol.record_keys.hash_range import even_ranges
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.cluster import Cluster, unique
from tests.clients.test_classic_groups import CONSUMER_GROUPS
from tests.clients.tools import DUMP_LOG, print_partition, run_tool

OFFSETS_FORMATTER = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
RECORDS = 40

BytesConsumer = Consumer[bytes | None, bytes | None]
BytesRecord = ConsumerRecord[bytes | None, bytes | None]


def sharer(bootstrap: str, group: str, topic: str, **options: Any) -> BytesConsumer:
    given: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "allow_individual_commit": True,
    }
    return Consumer(bootstrap, group=group, topics=[topic], **given, **options)


async def produce_keyed(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap) as producer:
        for number in range(RECORDS):
            await producer.send(topic, b"%d" % number, key=b"key-%d" % number)
        await producer.flush()


async def read_all(*consumers: BytesConsumer) -> list[list[BytesRecord]]:
    """All records of the topic, by consumer."""
    read: list[list[BytesRecord]] = [[] for _ in consumers]
    while sum(map(len, read)) < RECORDS:
        for consumer, records in zip(consumers, read, strict=True):
            records.extend(await consumer.poll(timeout=0.1))
    return read


@asynccontextmanager
async def sharing(bootstrap: str, group: str, topic: str) -> AsyncGenerator[list[BytesConsumer]]:
    """Two members that share the only partition."""
    async with AsyncExitStack() as stack:
        members = [
            await stack.enter_async_context(sharer(bootstrap, group, topic, client_id=f"app-{number}"))
            for number in range(2)
        ]
        while not all(member.assignment() for member in members):
            for member in members:
                await member.poll(timeout=0.1)
        yield members


async def with_gaps(bootstrap: str, cluster: Cluster) -> tuple[str, str]:
    """(topic, group) of a group that has committed 0 to 9, 20 to 24 and 30, and whose member has left."""
    topic, group = cluster.topic(), unique("group")
    await produce_keyed(bootstrap, topic)
    async with sharer(bootstrap, group, topic) as consumer:
        await read_all(consumer)
        await consumer.commit_ranges({TopicPartition(topic, 0): [(0, 9), (20, 24), (30, 30)]})
    return topic, group


async def ranges(capsys: pytest.CaptureFixture[str], bootstrap: str, *arguments: str) -> list[str]:
    exit_code = await asyncio.to_thread(main, ["ranges", "--bootstrap", bootstrap, *arguments])
    output = capsys.readouterr()
    assert (exit_code, output.err) == (0, "")
    return output.out.splitlines()


@pytest.mark.barnabas
class TestTheCommand:
    async def test_shows_offsets_and_ranges_of_a_group_without_members(
        self, bootstrap: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
    ) -> None:
        topic, group = await with_gaps(bootstrap, cluster)
        lines = await ranges(capsys, bootstrap, group, "--ranges")
        assert [line.split() for line in lines] == [
            [group, "(Empty)"],
            ["TOPIC", "PARTITION", "STABLE", "COMMITTED", "END", "LAG", "RANGES", "MEMBERS"],
            [topic, "0", "9", "10", str(RECORDS), str(RECORDS - 10), "2", "0"],
            [],
            ["TOPIC", "PARTITION", "FIRST", "OFFSET", "LAST", "OFFSET"],
            [topic, "0", "20", "24"],
            [topic, "0", "30", "30"],
        ]

    async def test_shows_the_sharers_with_their_hash_ranges_and_all_ranges_in_json(
        self, bootstrap: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
    ) -> None:
        topic, group = cluster.topic(), unique("group")
        async with sharing(bootstrap, group, topic) as members:
            await produce_keyed(bootstrap, topic)
            read = await read_all(*members)
            await members[0].commit()
            lines = await ranges(capsys, bootstrap, group, "--topic", topic, "--json")
        described, partition = map(json.loads, lines)
        assert described == {"type": "group", "group": group, "state": "Stable"}
        hashes = [(one["first_hash"], one["last_hash"]) for one in partition["sharers"]]
        assert hashes == list(map(tuple, even_ranges(2)))
        assert sorted(one["client_id"] for one in partition["sharers"]) == ["app-0", "app-1"]
        committed = {
            *range(partition["committed_offset"]),
            *(offset for first, last in partition["ranges"] for offset in range(first, last + 1)),
        }
        assert committed == {record.offset for record in read[0]}
        assert partition["range_count"] == len(partition["ranges"]) > 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["no-such-group"], "There is no group no-such-group with members or offsets."),
        (["{group}", "--topic", "no-such-topic"], "no-such-topic"),
    ],
)
@pytest.mark.barnabas
async def test_a_wrong_name_is_one_line_and_exit_code_6(
    bootstrap: str,
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    complaint: str,
) -> None:
    _, group = await with_gaps(bootstrap, cluster)
    given = [one.format(group=group) for one in arguments]
    assert await asyncio.to_thread(main, ["ranges", "--bootstrap", bootstrap, *given]) == 6
    output = capsys.readouterr()
    assert output.out == ""
    assert complaint in output.err
    assert output.err.count("\n") == 1


async def test_a_broker_without_ranges_is_named_in_one_line(
    bootstrap: str, shared_broker: BrokerProcess | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --broker, against Apache Kafka. Barnabas has them, and does not know the group."""
    exit_code = await asyncio.to_thread(main, ["ranges", "--bootstrap", bootstrap, unique("group")])
    assert exit_code == (ExitCode.REFUSED if shared_broker is None else ExitCode.NOT_FOUND)
    complaint = capsys.readouterr().err
    expected = "does not have the feature individual.commit" if shared_broker is None else "There is no group"
    assert expected in complaint
    assert complaint.count("\n") == 1


@pytest.mark.barnabas
@pytest.mark.clients
class TestKafkasTools:
    async def test_the_groups_command_shows_the_committed_offset_and_the_lag(
        self, bootstrap: str, cluster: Cluster
    ) -> None:
        topic, group = await with_gaps(bootstrap, cluster)
        command = (CONSUMER_GROUPS, "--bootstrap-server", bootstrap, "--describe", "--group", group)
        output = await asyncio.to_thread(run_tool, *command)
        rows = [line.split() for line in output.splitlines() if line.startswith(group)]
        assert [row[1:6] for row in rows] == [[topic, "0", "10", str(RECORDS), str(RECORDS - 10)]]

    async def test_the_formatter_and_the_dump_of_offsets_pass_over_ranges(
        self, barnabas_command: Path, tmp_path: Path
    ) -> None:
        settings = {**TEST_SETTINGS, "offsets.topic.num.partitions": "1"}
        with started(BrokerProcess(barnabas_command, tmp_path / "data", settings)) as broker:
            topic, group = await with_gaps(broker.address, Cluster(broker.address))
            formatted = await asyncio.to_thread(formatted_offsets, broker.address)
        assert [(key["group"], key["topic"], value["offset"]) for key, value in formatted] == [
            (group, topic, 0),
            (group, topic, 10),
        ]
        segment = tmp_path / "data" / "__consumer_offsets-0" / f"{0:020d}.log"
        dumped = await asyncio.to_thread(run_tool, DUMP_LOG, "--offsets-decoder", "--files", segment)
        assert f'"group":"{group}"' in dumped
        assert '"offset":10' in dumped


def formatted_offsets(bootstrap: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Key and value of all committed offsets, from kafka-console-consumer with Kafka's formatter."""
    output = print_partition(bootstrap, "__consumer_offsets", OFFSETS_FORMATTER)
    decoder, found, end = json.JSONDecoder(), list[tuple[dict[str, Any], dict[str, Any]]](), 0
    while output.startswith("{", end):  # the formatter prints nothing between two records
        record, end = decoder.raw_decode(output, end)
        found.append((record["key"]["data"], record["value"]["data"]))
    assert not output[end:].strip()
    return found
