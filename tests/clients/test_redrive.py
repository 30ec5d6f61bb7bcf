"""`barnabas dlq` with a real broker: letters are counted, shown, and re-driven, each once.

Most letters are written by the tests, with the headers of Apache Kafka 4.4; the last ones by the broker. With
`--clients` the tests also run against Apache Kafka.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from barnabas.__main__ import main
from barnabas.cli.dead_letters.content import CLOCK_DIFFERENCE_MAX_MS, RECREATED
from barnabas.cli.exit_codes import ExitCode
from barnabas.client import Producer, ShareConsumer
from tests.clients.cluster import Cluster, unique
from tests.clients.letters import (
    EXCEEDED,
    REJECTED,
    LetterBox,
    Written,
    letter_headers,
    numbered_records,
)
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.secured_kafka import PASSWORD, Secured, secured

__all__ = ["secured"]

pytestmark = pytest.mark.barnabas


@dataclass
class Command:
    """Runs `barnabas dlq` on one dead letter topic."""

    box: LetterBox
    capsys: pytest.CaptureFixture[str]

    def __call__(self, action: str, *arguments: str, exit_code: int = 0) -> list[dict[str, Any]]:
        """The rows that it printed as JSON."""
        given = ["dlq", action, self.box.dlq, "--bootstrap", self.box.address, "--json", *arguments]
        assert main(given) == exit_code
        output = self.capsys.readouterr()
        assert output.err == ""
        return [json.loads(line) for line in output.out.splitlines()]

    def redrive(self, *arguments: str, exit_code: int = 0) -> int:
        """The number of letters that were re-driven; no letter was a failure."""
        (tally,) = self("redrive", *arguments, exit_code=exit_code)
        assert tally["type"] == ("would_redrive" if "--dry-run" in arguments else "redriven")
        count: int = tally["letters"]
        return count


@pytest.fixture
def box(address: str) -> LetterBox:
    return LetterBox(address)


@pytest.fixture
def dlq(box: LetterBox, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(box, capsys)


class TestList:
    def test_letters_are_counted_by_topic_group_and_reason(self, box: LetterBox, dlq: Command) -> None:
        box.add(*numbered_records(3))
        box.add(*numbered_records(2), reason=EXCEEDED)
        box.add(*numbered_records(1), group="audit")
        rows = dlq("list")
        assert [(one["source_topic"], one["group"], one["reason"], one["letter_count"]) for one in rows] == [
            (box.source, "audit", REJECTED, 1),
            (box.source, "billing", EXCEEDED, 2),
            (box.source, "billing", REJECTED, 3),
        ]
        assert all(one["oldest_ms"] <= one["newest_ms"] for one in rows)

    def test_letters_that_were_redriven_are_counted_and_may_be_left_out(
        self, box: LetterBox, dlq: Command
    ) -> None:
        box.add(*numbered_records(5))
        assert dlq.redrive("--offsets", "0:1-2") == 2
        (row,) = dlq("list")
        assert (row["letter_count"], row["redriven_count"]) == (5, 2)
        (row,) = dlq("list", "--waiting")
        assert (row["letter_count"], row["redriven_count"]) == (3, 0)

    def test_a_filter_by_key_counts_records_that_only_the_source_topic_has(
        self, box: LetterBox, dlq: Command
    ) -> None:
        box.add(*numbered_records(7))
        (row,) = dlq("list", "--key", "key-0")
        assert row["letter_count"] == 3

    def test_an_empty_topic_has_no_letters(self, dlq: Command) -> None:
        assert dlq("list") == []


class TestShow:
    def test_a_letter_is_shown_with_the_record_of_the_source_topic(
        self, box: LetterBox, dlq: Command
    ) -> None:
        box.add(Written(b"k", b"v", [("trace", b"t")]))
        (row,) = dlq("show")
        assert row.pop("timestamp_ms") > 0
        assert row == {
            "type": "letter",
            "topic": box.dlq,
            "partition": 0,
            "offset": 0,
            "source_topic": box.source,
            "source_partition": 0,
            "source_offset": 0,
            "group": "billing",
            "delivery_count": 1,
            "reason": REJECTED,
            "redriven": False,
            "record": "source",
            "key": "k",
            "value": "v",
            "headers": [{"key": "trace", "value": "t"}],
        }

    def test_a_record_without_a_letter_is_named(self, box: LetterBox, dlq: Command) -> None:
        box.produce(box.dlq, [Written(b"k", b"v")])
        (row,) = dlq("show")
        assert (row["type"], row["reason"]) == ("not_a_letter", "it has no header __dlq.errors.topic")

    def test_the_limit_bounds_the_letters(self, box: LetterBox, dlq: Command) -> None:
        box.add(*numbered_records(5))
        assert [one["offset"] for one in dlq("show", "--limit", "2")] == [0, 1]


class TestRedrive:
    def test_records_return_to_their_partitions_with_their_headers(
        self, address: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        box = LetterBox(address, partition_count=2)
        dlq = Command(box, capsys)
        records = numbered_records(6)
        box.add(*records[:4], partition=0)
        box.add(*records[4:], partition=1)
        assert dlq.redrive() == 6
        assert box.read(box.source, 0, after=4) == records[:4]
        assert box.read(box.source, 1, after=2) == records[4:]

    def test_a_second_run_and_another_filter_redrive_no_letter_again(
        self, box: LetterBox, dlq: Command
    ) -> None:
        records = numbered_records(9)
        box.add(*records)
        assert dlq.redrive("--key", "key-1") == 3
        assert dlq.redrive("--group", "billing") == 6
        assert dlq.redrive() == 0
        again = [int(one.value or b"") for one in box.read(box.source, after=9)]
        assert again == [1, 4, 7, 0, 2, 3, 5, 6, 8]

    def test_again_redrives_letters_once_more(self, box: LetterBox, dlq: Command) -> None:
        box.add(*numbered_records(2))
        assert dlq.redrive() == 2
        assert dlq.redrive("--again", "--offsets", "1") == 1
        assert [one.value for one in box.read(box.source, after=2)] == [b"0", b"1", b"1"]

    def test_a_dry_run_writes_nothing(self, box: LetterBox, dlq: Command) -> None:
        box.add(*numbered_records(3))
        before = set(box.cluster.admin.list_topics().topics)
        assert dlq.redrive("--dry-run") == 3
        assert box.read(box.source, after=3) == []
        assert set(box.cluster.admin.list_topics().topics) == before

    def test_another_topic_gets_the_records(self, box: LetterBox, dlq: Command) -> None:
        target = box.cluster.topic()
        box.add(*numbered_records(3))
        assert dlq.redrive("--to", target) == 3
        assert box.read(target) == numbered_records(3)
        assert box.read(box.source, after=3) == []

    def test_letters_that_arrive_later_are_redriven_by_the_next_run(
        self, box: LetterBox, dlq: Command
    ) -> None:
        box.add(*numbered_records(2))
        assert dlq.redrive() == 2
        box.add(*numbered_records(3))
        assert dlq.redrive("--batch", "1") == 3

    @pytest.mark.parametrize(
        ("arguments", "count"),
        [
            (("--reason", "REJECTED"), 2),
            (("--reason", "threshold"), 1),
            (("--group", "billing"), 2),
            (("--source", "elsewhere"), 0),
            (("--since", "2020-01-01T00:00"), 3),
            (("--until", "2020-01-01T00:00"), 0),
            (("--offsets", "0", "--offsets", "0:2-9"), 2),
            (("--offsets", "1:0-9"), 0),
            (("--key", "key-1", "--group", "billing"), 1),
        ],
    )
    def test_a_letter_must_pass_all_filters(
        self, box: LetterBox, dlq: Command, arguments: tuple[str, ...], count: int
    ) -> None:
        first, second, third = numbered_records(3)
        box.add(first, second)
        box.add(third, reason=EXCEEDED, group="audit")
        assert dlq.redrive(*arguments) == count

    def test_nulls_of_the_source_record_stay_nulls(self, box: LetterBox, dlq: Command) -> None:
        box.add(Written(None, None, [("deleted", None)]), Written(b"k", None))
        assert dlq.redrive() == 2
        assert box.read(box.source, after=2) == [
            Written(None, None, [("deleted", None)]),
            Written(b"k", None, []),
        ]


class TestRecordsThatAreGone:
    def test_a_letter_of_a_deleted_topic_is_named_and_not_redriven(
        self, box: LetterBox, dlq: Command
    ) -> None:
        target = box.cluster.topic()
        letters = [letter_headers("no-such-topic", 0, 7), letter_headers(box.source, 0, 5)]
        box.produce(box.dlq, [Written(None, None, one) for one in letters])
        first, second, tally = dlq("redrive", "--to", target, exit_code=ExitCode.NOT_ALL)
        assert (first["source_topic"], first["source_offset"], first["reason"]) == (
            "no-such-topic",
            7,
            "its record is gone: there is no topic of this name any more",
        )
        assert second["reason"] == "its record is gone: the topic has no record at this offset any more"
        assert (tally["letters"], tally["record_gone"]) == (0, 2)
        assert box.read(target) == []

    def test_records_that_were_deleted_are_named_and_the_others_are_redriven(
        self, box: LetterBox, dlq: Command
    ) -> None:
        records = numbered_records(4)
        box.add(*records)
        delete_records(box.cluster, box.source, before=2)
        *rows, tally = dlq("redrive", exit_code=ExitCode.NOT_ALL)
        assert [one["source_offset"] for one in rows] == [0, 1]
        assert (tally["letters"], tally["record_gone"]) == (2, 2)
        assert box.read(box.source, after=4) == records[2:]

    def test_a_copy_takes_the_place_of_a_record_that_is_gone(self, box: LetterBox, dlq: Command) -> None:
        box.add(*numbered_records(2), copied=True)
        delete_records(box.cluster, box.source, before=1)
        (tally,) = dlq("redrive")
        assert (tally["from_source"], tally["from_copy"]) == (1, 1)
        copy, whole = box.read(box.source, after=2)
        assert copy == Written(b"key-0", b"0", [])
        assert whole == numbered_records(2)[1]

    def test_a_copy_wins_over_another_record_at_the_offset(self, box: LetterBox, dlq: Command) -> None:
        box.produce(box.source, [Written(b"new", b"another record")])
        copied = Written(b"k", b"v", letter_headers(box.source, 0, 0))
        box.produce(box.dlq, [copied])
        (tally,) = dlq("redrive")
        assert tally["from_copy"] == 1
        assert box.read(box.source, after=1) == [Written(b"k", b"v", [])]

    def test_a_letter_whose_topic_is_gone_needs_another_target(self, box: LetterBox, dlq: Command) -> None:
        box.produce(box.dlq, [Written(b"k", b"v", letter_headers("no-such-topic", 0, 0))])
        row, tally = dlq("redrive", exit_code=ExitCode.NOT_ALL)
        assert row["reason"] == "there is no topic no-such-topic any more; --to names another topic"
        assert (tally["letters"], tally["without_target"]) == (0, 1)
        assert dlq.redrive("--to", box.source) == 1

    def test_a_record_without_a_letter_is_left_alone(self, box: LetterBox, dlq: Command) -> None:
        box.produce(box.dlq, [Written(b"k", b"v")])
        row, tally = dlq("redrive", exit_code=ExitCode.NOT_ALL)
        assert row["reason"] == "it is not a dead letter: it has no header __dlq.errors.topic"
        assert tally["not_a_letter"] == 1

    def test_a_record_of_a_topic_that_was_created_again_is_not_redriven(
        self, box: LetterBox, dlq: Command
    ) -> None:
        box.add(Written(b"k", b"v"))
        later_ms = int(time.time() * 1000) + 2 * CLOCK_DIFFERENCE_MAX_MS
        (offset,) = box.produce(box.source, [Written(b"k", b"newer")], timestamp_ms=later_ms)
        box.produce(box.dlq, [Written(None, None, letter_headers(box.source, 0, offset))])
        row, tally = dlq("redrive", exit_code=ExitCode.NOT_ALL)
        assert row["reason"] == f"its record is gone: {RECREATED}"
        assert (tally["letters"], tally["record_gone"]) == (1, 1)


class TestFailures:
    def test_a_record_that_the_target_refuses_ends_the_run_and_names_its_batch(
        self, box: LetterBox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        target = box.cluster.topic(max_message_bytes="1000")
        small, large = Written(b"k", b"small", []), Written(b"k", bytes(5_000), [])
        box.add(small, small, large, small)
        given = ["dlq", "redrive", box.dlq, "--bootstrap", box.address, "--to", target]
        assert main([*given, "--batch", "2"]) == 1
        complaint = capsys.readouterr().err
        assert f"The batch of 2 letters from {box.dlq}-0 offset 2 to {box.dlq}-0 offset 3 failed" in complaint
        assert box.read(target) == [small, small]
        assert main([*given, "--offsets", "3"]) == 0
        assert box.read(target) == [small] * 3

    def test_records_of_an_aborted_transaction_are_no_letters(self, box: LetterBox, dlq: Command) -> None:
        box.add(*numbered_records(1))
        asyncio.run(abort(box.address, box.dlq, letter_headers(box.source, 0, 0)))
        assert dlq.redrive() == 1

    def test_a_missing_topic_is_one_line_and_exit_code_6(
        self, address: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["dlq", "list", "no-such-topic", "--bootstrap", address]) == 6
        assert capsys.readouterr().err == "barnabas: There is no topic no-such-topic.\n"


async def abort(address: str, topic: str, headers: Iterable[tuple[str, bytes | None]]) -> None:
    """Produce a record in a transaction, and abort it."""
    async with Producer(address, transactional_id=unique("writer")) as producer:
        await producer.init_transactions()
        producer.begin_transaction()
        await producer.send_and_wait(topic, None, headers=headers)
        await producer.abort_transaction()


class TestTheJournal:
    def test_a_new_topic_of_the_same_name_has_letters_to_redrive(self, box: LetterBox, dlq: Command) -> None:
        box.add(*numbered_records(2))
        assert dlq.redrive() == 2
        (deleted,) = box.cluster.admin.delete_topics([box.dlq], operation_timeout=SECONDS_MAX).values()
        deleted.result()
        box.cluster.topic(name=box.dlq)
        box.add(*numbered_records(1))
        assert dlq.redrive() == 1
        assert [one.value for one in box.read(f"barnabas.redriven.{box.dlq}")].count(None) == 1

    def test_a_journal_that_would_be_deleted_by_age_is_refused(
        self, box: LetterBox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        box.add(*numbered_records(1))
        box.cluster.topic(name=f"barnabas.redriven.{box.dlq}", cleanup_policy="delete")
        assert main(["dlq", "redrive", box.dlq, "--bootstrap", box.address]) == 1
        assert "needs one partition and cleanup.policy=compact" in capsys.readouterr().err
        assert box.read(box.source, after=1) == []

    def test_a_record_of_another_program_in_the_journal_is_refused(
        self, box: LetterBox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        box.add(*numbered_records(1))
        journal = box.cluster.topic(name=f"barnabas.redriven.{box.dlq}", cleanup_policy="compact")
        box.produce(journal, [Written(b"k", b"v")])
        assert main(["dlq", "redrive", box.dlq, "--bootstrap", box.address]) == 1
        assert "its record at offset 0 cannot be used" in capsys.readouterr().err
        assert box.read(box.source, after=1) == []


def delete_records(cluster: Cluster, topic: str, *, before: int) -> None:
    for deleted in cluster.admin.delete_records([TopicPartition(topic, 0, before)]).values():
        deleted.result()


def reject_all(box: LetterBox, records: list[Written], **settings: str) -> str:
    """Produce the records, and reject them in a group with these settings; returns the group.

    The broker itself writes the letters. `settings` have underscores for dots.
    """
    box.cluster.set_topic(box.dlq, {"errors.deadletterqueue.group.enable": "true"})
    group = box.cluster.group()
    given = {name.replace("_", "."): value for name, value in settings.items()}
    box.cluster.set_group(group, {"errors.deadletterqueue.topic.name": box.dlq, **given})
    box.produce(box.source, records)
    asyncio.run(reject(box.address, group, box.source, len(records)))
    eventually(lambda: len(box.read(box.dlq)) == len(records), awaited="the broker writes the letters")
    return group


@pytest.mark.parametrize("copies", [True, False])
def test_letters_of_the_broker_are_shown_and_redriven(box: LetterBox, dlq: Command, copies: bool) -> None:
    records = numbered_records(3)
    group = reject_all(box, records, errors_deadletterqueue_copy_record_enable=str(copies).lower())
    letters = dlq("show", "--group", group, "--reason", "rejected")
    assert [(one["source_offset"], one["value"], one["record"]) for one in letters] == [
        (0, "0", "source"),
        (1, "1", "source"),
        (2, "2", "source"),
    ]
    delete_records(box.cluster, box.source, before=1)
    if copies:
        assert dlq.redrive() == 3
        assert box.read(box.source, after=3) == [records[0]._replace(headers=[]), *records[1:]]
    else:
        *_, tally = dlq("redrive", exit_code=ExitCode.NOT_ALL)
        assert (tally["letters"], tally["record_gone"]) == (2, 1)
        assert box.read(box.source, after=3) == records[1:]


def test_a_letter_of_barnabas_may_have_the_headers_of_the_record(
    bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    box = LetterBox(bootstrap)
    records = numbered_records(2)
    copying = {"errors_deadletterqueue_copy_record_enable": "true"}
    reject_all(box, records, **copying, share_dead_letter_copy_headers_enable="true")
    delete_records(box.cluster, box.source, before=2)
    assert Command(box, capsys).redrive() == 2
    assert box.read(box.source, after=2) == records


@pytest.mark.clients
def test_a_broker_with_tls_and_passwords_needs_a_file_with_settings(
    secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    box = LetterBox(secured.kafka.address)
    box.add(*numbered_records(3))
    settings = tmp_path / "client.properties"
    settings.write_text("".join(f"{name}={value}\n" for name, value in secured.settings("SASL_SSL").items()))
    given = ["dlq", "redrive", box.dlq, "--bootstrap", secured.kafka.at("SASL_SSL")]
    assert main([*given, "--security", str(settings)]) == 0
    assert box.read(box.source, after=3) == numbered_records(3)
    settings.write_text(settings.read_text().replace(PASSWORD, "wrong"))
    capsys.readouterr()
    assert main([*given, "--security", str(settings)]) == 4
    assert PASSWORD not in capsys.readouterr().err


async def reject(address: str, group: str, topic: str, count: int) -> None:
    """Reject this number of records."""
    async with ShareConsumer(address, group=group, topics=[topic]) as consumer:
        rejected_count = 0
        async for record in consumer:
            record.reject()
            rejected_count += 1
            if rejected_count == count:
                break
        await consumer.commit()
