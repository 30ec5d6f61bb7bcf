"""`barnabas inspect` and `records` beside unmodified share consumers, whose records are changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType

from barnabas.__main__ import main
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import NEVER_MS, Cluster, numbered, unique
from tests.clients.confluent_polling import poll_some as poll_confluent
from tests.clients.confluent_polling import settle, share_consumer, text
from tests.clients.java_polling import poll_some as poll_java
from tests.clients.polling import eventually
from tests.clients.share_probe import ShareProbe

Share = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def share(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Share:
    """Runs `barnabas share` with these arguments; the rows that it prints."""

    def run(*arguments: object) -> list[dict[str, Any]]:
        given = [*map(str, arguments), "--bootstrap", bootstrap, "--json"]
        exit_code = main(given)
        output = capsys.readouterr()
        assert (exit_code, output.err) == (0, "")
        return [json.loads(line) for line in output.out.splitlines()]

    return run


def held_records(rows: list[dict[str, Any]]) -> dict[int, str]:
    """The client id of the holder of each held record."""
    return {
        offset: row["holder"]["client_id"]
        for row in rows
        if row["type"] == "range" and row["state"] == "acquired"
        for offset in range(row["first_offset"], row["last_offset"] + 1)
    }


@pytest.mark.barnabas
def test_records_of_a_confluent_consumer_are_shown_released_and_archived(
    bootstrap: str, cluster: Cluster, share: Share
) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=NEVER_MS)
    cluster.produce(topic, numbered(5))
    consumer = share_consumer(bootstrap, group, topic)
    try:
        messages = poll_confluent(consumer)
        assert len(messages) == 5
        settle(consumer, messages[:1], lambda one: consumer.acknowledge(one, AcknowledgeType.ACCEPT))
        assert held_records(share("inspect", group)) == dict.fromkeys(range(1, 5), "rdkafka")
        (changed,) = share("records", "archive", group, topic, 0, "1-2")
        assert changed["record_count"] == 2
        share("records", "release", group, topic, 0, 3)
        other = share_consumer(bootstrap, group, topic)
        try:
            (again,) = poll_confluent(other)
            assert (text(again), again.offset()) == (text(messages[3]), 3)
        finally:
            other.close()
    finally:
        consumer.close()
    changes = {row["first_offset"]: row["last_change"] for row in share("inspect", group, topic)[1:]}
    assert changes[3]["cause"] in ("session ended", "release")


@pytest.mark.barnabas
def test_a_java_consumer_goes_on_after_its_records_were_taken(
    cluster: Cluster, probe: ShareProbe, share: Share
) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=NEVER_MS)
    cluster.produce(topic, numbered(4))
    consumer = probe.consumer(
        unique("consumer"), group, [topic], share_acknowledgement_mode="explicit", client_id="java-app"
    )
    records = poll_java(consumer)
    assert held_records(share("inspect", group, f"{topic}:0")) == dict.fromkeys(range(4), "java-app")
    share("records", "archive", group, topic, 0, 1)
    consumer.acknowledge(records)
    (result,) = consumer.commit_sync()
    assert result.error == "InvalidRecordStateException"
    cluster.produce(topic, ["one more"])
    assert eventually(consumer.poll, awaited="the consumer gets records again")
    consumer.close()


@pytest.mark.barnabas
def test_an_administrator_sends_a_held_record_to_the_dead_letter_topic(
    bootstrap: str, cluster: Cluster, share: Share, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=NEVER_MS)
    cluster.set_group(group, {"errors.deadletterqueue.topic.name": f"dlq.{topic}"})
    cluster.produce(topic, numbered(4))
    consumer = share_consumer(bootstrap, group, topic)
    try:
        assert len(poll_confluent(consumer)) == 4
        (changed,) = share("records", "dead-letter", group, topic, 0, 1)
        assert (changed["action"], changed["record_count"]) == ("dead-letter", 1)

        def outcome() -> tuple[str, str | None]:
            (row,) = share("inspect", group, f"{topic}:0", "--from-offset", 1, "--to-offset", 1)[1:]
            change: dict[str, str] | None = row["last_change"]
            return row["state"], None if change is None else change["cause"]

        eventually(lambda: outcome() == ("archived", "dead letter"), awaited="the letter is written")
        for offsets, told in (("0", "1 record on its way"), ("2-3", "2 records on their way")):
            assert main(["records", "dead-letter", group, topic, "0", offsets, "--bootstrap", bootstrap]) == 0
            assert capsys.readouterr().out == f"{topic}-0: {told} to dead letters\n"
    finally:
        consumer.close()
    cluster.admin.delete_topics([f"dlq.{topic}"])


@pytest.mark.parametrize(
    ("arguments", "exit_code", "complaint"),
    [
        (["inspect", "no-such-group"], 6, "There is no share group no-such-group that reads any topic."),
        (["inspect", "{group}", "no-such-topic:0"], 6, "There is no topic no-such-topic."),
        (["inspect", "{group}", "{topic}:9"], 2, "{topic} has no partition 9; its last one is 0."),
        (["records", "release", "no-such-group", "{topic}", "0", "0"], 5, "no-such-group"),
        (["records", "release", "{group}", "{topic}", "0", "0"], 5, "{group}"),
    ],
)
@pytest.mark.barnabas
def test_a_wrong_name_is_one_line_and_an_exit_code(
    bootstrap: str,
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    exit_code: int,
    complaint: str,
) -> None:
    names = {"topic": cluster.topic(), "group": unique("group")}
    given = [one.format(**names) for one in arguments]
    assert main([*given, "--bootstrap", bootstrap]) == exit_code
    output = capsys.readouterr()
    assert output.out == ""
    assert complaint.format(**names) in output.err
    assert output.err.count("\n") == 1


def test_a_broker_without_the_api_is_named_in_one_line(
    bootstrap: str,
    cluster: Cluster,
    shared_broker: BrokerProcess | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With --broker, against Apache Kafka. Barnabas has it, and does not know the group."""
    topic = cluster.topic()
    assert main(["inspect", "no-such-group", f"{topic}:0", "--bootstrap", bootstrap]) == 5
    complaint = capsys.readouterr().err
    expected = "Only Barnabas has this API" if shared_broker is None else "no-such-group"
    assert expected in complaint
    assert complaint.count("\n") == 1
