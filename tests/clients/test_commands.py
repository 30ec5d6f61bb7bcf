"""The commands that use only Kafka's APIs, with Barnabas and, with `--clients`, with Apache Kafka."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.__main__ import main
from barnabas.cli.administration import topics as administration
from barnabas.cli.exit_codes import ExitCode
from barnabas.client.admin.connection import AdminConnection
from barnabas.client.admin.group_positions import fetch_bounds
from barnabas.client.admin.topics import delete_topic
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, reserved_port
from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.confluent_polling import poll_some, share_consumer

pytestmark = pytest.mark.barnabas


@dataclass
class Command:
    """Runs `barnabas` with arguments; returns the rows that it printed as JSON."""

    address: str
    capsys: pytest.CaptureFixture[str]
    errors: str = ""

    def __call__(self, *arguments: object, exit_code: int = 0) -> list[dict[str, Any]]:
        given = [*map(str, arguments), "--json", "--bootstrap", self.address]
        assert main(given) == exit_code, self.capsys.readouterr().err
        output = self.capsys.readouterr()
        self.errors = output.err
        assert exit_code or output.err == ""
        return [json.loads(line) for line in output.out.splitlines()]


@pytest.fixture
def barnabas(address: str, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(address, capsys)


@pytest.fixture
def cluster_of_address(address: str) -> Cluster:
    return Cluster(address)


class TestTopics:
    def test_a_topic_is_created_described_grown_and_deleted(self, barnabas: Command) -> None:
        name = unique("topic")
        barnabas("topics", "create", name, "--partitions", 2, "--dry-run")
        assert name not in [row["topic"] for row in barnabas("topics", "list")]
        barnabas("topics", "create", name, "--partitions", 2, "--set", "retention.ms=60000")
        topic, *partitions = barnabas("topics", "describe", name)
        assert topic["settings"]["retention.ms"] == "60000"
        assert [row["partition"] for row in partitions] == [0, 1]
        barnabas("topics", "grow", name, 3)
        (listed,) = [row for row in barnabas("topics", "list") if row["topic"] == name]
        assert (listed["partition_count"], listed["is_internal"]) == (3, False)
        barnabas("topics", "delete", name)
        barnabas("topics", "describe", name, exit_code=ExitCode.NOT_FOUND)
        assert barnabas.errors == f"barnabas: There is no topic {name}.\n"

    @pytest.mark.parametrize(
        ("arguments", "exit_code", "complaint"),
        [
            (["create", "{topic}"], ExitCode.REFUSED, "TOPIC_ALREADY_EXISTS"),
            (["create", "other", "--set", "retention.mss=1"], ExitCode.REFUSED, "INVALID_CONFIG"),
            (["grow", "{topic}", "1"], ExitCode.REFUSED, "INVALID_PARTITIONS"),
            (["grow", "no-such-topic", "9"], ExitCode.NOT_FOUND, "There is no topic no-such-topic."),
            (["delete", "no-such-topic"], ExitCode.NOT_FOUND, "There is no topic no-such-topic."),
        ],
    )
    def test_a_refusal_is_one_line(
        self,
        barnabas: Command,
        cluster_of_address: Cluster,
        arguments: list[str],
        exit_code: int,
        complaint: str,
    ) -> None:
        topic = cluster_of_address.topic()
        barnabas("topics", *(one.format(topic=topic) for one in arguments), exit_code=exit_code)
        assert complaint in barnabas.errors
        assert barnabas.errors.count("\n") == 1


class TestConfig:
    def test_a_setting_of_a_topic_is_set_shown_with_its_source_and_deleted(
        self, barnabas: Command, cluster_of_address: Cluster
    ) -> None:
        topic = cluster_of_address.topic()
        (row,) = barnabas("config", "set", "topic", topic, "retention.ms=60000")
        assert (row["name"], row["value"], row["source"]) == ("retention.ms", "60000", "topic")
        assert row in barnabas("config", "get", "topic", topic)
        (row,) = barnabas("config", "delete", "topic", topic, "retention.ms")
        assert (row["value"], row["source"]) == ("604800000", "default")
        assert len(barnabas("config", "get", "topic", topic, "--all")) > 20

    def test_a_group_and_a_broker_have_settings(self, barnabas: Command) -> None:
        group = unique("group")
        barnabas("config", "set", "group", group, "share.auto.offset.reset=earliest")
        (row,) = barnabas("config", "get", "group", group, "share.auto.offset.reset")
        assert (row["value"], row["source"]) == ("earliest", "group")
        (row,) = barnabas("config", "get", "broker", "1", "num.partitions")
        assert row["source"] in ("default", "configuration")
        barnabas("config", "set", "broker", "default", "message.max.bytes=2000000")
        (row,) = barnabas("config", "get", "broker", "1", "message.max.bytes")
        assert row["source"] == "all brokers"
        barnabas("config", "delete", "broker", "default", "message.max.bytes")

    def test_an_unknown_name_is_refused_with_the_nearest_one(self, barnabas: Command) -> None:
        for action, given in (("get", "share.auto.offset.rset"), ("set", "share.auto.offset.rest=latest")):
            barnabas("config", action, "group", "g", given, exit_code=ExitCode.NOT_FOUND)
            assert barnabas.errors.endswith("is share.auto.offset.reset meant?\n")
        barnabas("config", "get", "broker", "7", exit_code=ExitCode.USAGE)
        assert barnabas.errors == "barnabas: The cluster has no broker 7; its brokers are 1.\n"
        barnabas("config", "get", "broker", "one", exit_code=ExitCode.USAGE)


class TestTopicsIfMissing:
    def test_a_topic_is_created_once(self, barnabas: Command) -> None:
        topic = unique("topic")
        given = ("topics", "create", topic, "--partitions", 2, "--if-missing")
        assert [barnabas(*given)[0]["created"] for _ in range(2)] == [True, False]
        (row,) = barnabas("topics", "create", topic, "--if-missing")
        assert (row["created"], row["partition_count"]) == (False, 2)

    def test_another_number_of_partitions_is_refused(self, barnabas: Command) -> None:
        topic = unique("topic")
        barnabas("topics", "create", topic, "--partitions", 1)
        given = ("topics", "create", topic, "--partitions", 3, "--if-missing")
        barnabas(*given, exit_code=ExitCode.REFUSED)
        assert barnabas.errors == (
            f"barnabas: The topic {topic} has 1 partition and not 3: name that number, or delete the topic "
            "first.\n"
        )


class TestRecords:
    def test_records_are_produced_from_files_and_printed(
        self, barnabas: Command, cluster_of_address: Cluster, tmp_path: Path
    ) -> None:
        topic, copy = cluster_of_address.topic(), cluster_of_address.topic()
        lines = tmp_path / "lines"
        lines.write_text("a=1\nb=2\na=3\n")
        (row,) = barnabas("produce", topic, lines, "--key-separator", "=", "--header", "source=test")
        assert row["partitions"] == [{"partition": 0, "first_offset": 0, "last_offset": 2, "count": 3}]
        rows = barnabas("consume", topic)
        assert [(row["key"], row["value"], row["offset"]) for row in rows] == [
            ("a", "1", 0),
            ("b", "2", 1),
            ("a", "3", 2),
        ]
        assert rows[0]["headers"] == [{"key": "source", "value": "test"}]
        again = tmp_path / "again"
        again.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        barnabas("produce", copy, again, "--from-json")
        assert [{**row, "topic": topic} for row in barnabas("consume", copy)] == rows

    @pytest.mark.parametrize(
        ("arguments", "values"),
        [
            (["--last", "2"], ["record-3", "record-4"]),
            (["--from", "3"], ["record-3", "record-4"]),
            (["--from", "9"], []),
            (["--from", "latest"], []),
            (["--from", "2020-01-01", "--max", "1"], ["record-0"]),
            (["--from", "2099-01-01"], []),
            (["--until", "2020-01-01"], []),
            (["--grep", "[13]$"], ["record-1", "record-3"]),
            (["--key", "k"], []),
            (["--committed", "--max", "2"], ["record-0", "record-1"]),
        ],
    )
    def test_only_the_wanted_records_are_printed(
        self, barnabas: Command, cluster_of_address: Cluster, arguments: list[str], values: list[str]
    ) -> None:
        topic = cluster_of_address.topic()
        cluster_of_address.produce(topic, numbered(5))
        exit_code = ExitCode.DONE if values else ExitCode.NOT_FOUND
        rows = barnabas("consume", f"{topic}:0", *arguments, exit_code=exit_code)
        assert [row["value"] for row in rows] == values

    def test_a_followed_topic_and_a_group_end_when_they_are_idle(
        self, barnabas: Command, cluster_of_address: Cluster
    ) -> None:
        topic, group = cluster_of_address.topic(2), unique("group")
        cluster_of_address.produce(topic, numbered(4))
        behind = ("--follow", "--from", "latest", "--idle", "200ms")
        assert barnabas("consume", topic, *behind, exit_code=ExitCode.NOT_FOUND) == []
        rows = barnabas("consume", topic, "--group", group, "--max", 4)
        assert {row["value"] for row in rows} == set(numbered(4))
        assert (
            barnabas("consume", topic, "--group", group, "--idle", "1s", exit_code=ExitCode.NOT_FOUND) == []
        )
        described, *positions = barnabas("groups", "describe", group)
        assert (described["group_type"], described["lag"]) == ("consumer", 0)
        assert sum(row["offset"] for row in positions) == 4

    def test_followed_records_reach_a_pipe_at_once(
        self, cluster_of_address: Cluster, address: str, barnabas_command: Path
    ) -> None:
        topic = cluster_of_address.topic()
        given = [str(barnabas_command), "consume", topic, "--follow", "--bootstrap", address]
        with subprocess.Popen(given, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for value in ("first", "second"):
                cluster_of_address.produce(topic, [value])
                assert process.stdout.readline() == f"{value}\n"
            process.terminate()
            assert process.wait() == ExitCode.STOPPED

    def test_the_end_of_the_reader_ends_the_command_without_words(
        self, cluster_of_address: Cluster, address: str, barnabas_command: Path
    ) -> None:
        topic = cluster_of_address.topic()
        cluster_of_address.produce(topic, ["x" * 1000] * 1000)
        script = f'"{barnabas_command}" consume {topic} --bootstrap {address} | head -n 1; exit $PIPESTATUS'
        ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (ExitCode.STOPPED, f"{'x' * 1000}\n", "")

    def test_a_record_that_the_broker_refuses_ends_the_command_and_the_others_are_counted(
        self, barnabas: Command, cluster_of_address: Cluster, tmp_path: Path
    ) -> None:
        topic = cluster_of_address.topic(max_message_bytes="1000")
        lines = tmp_path / "lines"
        lines.write_text(f"small\n{'x' * 5000}\n")
        (row,) = barnabas("produce", topic, lines, exit_code=ExitCode.REFUSED)
        assert row["record_count"] <= 1
        assert "MESSAGE_TOO_LARGE" in barnabas.errors.upper()
        assert barnabas.errors.count("\n") == 1

    @pytest.mark.parametrize(
        ("arguments", "exit_code", "complaint"),
        [
            (["consume", "no-such-topic"], ExitCode.NOT_FOUND, "There is no topic no-such-topic."),
            (["consume", "{topic}:5"], ExitCode.NOT_FOUND, "{topic} has no partition 5; its last one is 0."),
            (["consume", "{topic}", "--from", "noon"], ExitCode.USAGE, "--from: 'noon' is not a time"),
            (["consume", "{topic}", "--grep", "("], ExitCode.USAGE, "--grep: '(' is not a regular expr"),
            (["consume", "{topic}", "--group", "g", "--last", "1"], ExitCode.USAGE, "barnabas groups reset"),
            (["consume", "{topic}:0", "--group", "g"], ExitCode.USAGE, "name topics alone"),
            (["produce", "{topic}", "/no/such/file"], ExitCode.FAILED, "/no/such/file cannot be read"),
            (
                ["produce", "no-such", "{file}"],
                ExitCode.NOT_FOUND,
                "Create it: barnabas topics create no-such",
            ),
            (["produce", "{topic}", "{file}", "--from-json"], ExitCode.FAILED, "Line 1 of {file} is no"),
            (["produce", "{topic}", "{file}", "--partition", "9"], ExitCode.USAGE, "9"),
            (["produce", "{topic}", "{file}", "--key-separator", ""], ExitCode.USAGE, "is empty"),
        ],
    )
    def test_a_mistake_is_one_line(
        self,
        barnabas: Command,
        cluster_of_address: Cluster,
        tmp_path: Path,
        arguments: list[str],
        exit_code: int,
        complaint: str,
    ) -> None:
        file = tmp_path / "lines"
        file.write_text("one\n")
        names = {"topic": cluster_of_address.topic(), "file": str(file)}
        rows = barnabas(*(one.format(**names) for one in arguments), exit_code=exit_code)
        assert rows == [] or exit_code is not ExitCode.NOT_FOUND
        assert complaint.format(**names) in barnabas.errors
        assert barnabas.errors.count("\n") == 1


class TestShareGroups:
    def test_a_policy_acknowledges_the_printed_records(
        self, barnabas: Command, cluster_of_address: Cluster
    ) -> None:
        topic, group = cluster_of_address.topic(), cluster_of_address.group()
        cluster_of_address.produce(topic, numbered(4))
        record, tally = barnabas("share", group, topic, "--release", "--max", 1)
        assert (record["value"], record["delivery_count"], tally["released"]) == ("record-0", 1, 1)
        *records, tally = barnabas("share", group, topic, "--accept", "--max", 3)
        assert [one["delivery_count"] for one in records] == [2, 1, 1]
        assert (tally["accepted"], tally["rejected"]) == (3, 0)
        *records, tally = barnabas("share", group, topic, "--reject", "--max", 1)
        assert ([one["value"] for one in records], tally["rejected"]) == (["record-3"], 1)
        barnabas("share", group, topic, "--accept", "--idle", "1s", exit_code=ExitCode.NOT_FOUND)

    def test_a_listed_lag_counts_the_partitions_that_it_leaves_out(
        self, barnabas: Command, cluster_of_address: Cluster, address: str
    ) -> None:
        topic, group = cluster_of_address.topic(3), unique("group")
        consumer = Consumer({"bootstrap.servers": address, "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, 1, 0)], asynchronous=False)
        consumer.close()
        (listed,) = [row for row in barnabas("groups", "list", "--lag") if row["group"] == group]
        assert (listed["lag"], listed["not_begun_count"]) == (0, 2)

    def test_a_group_is_listed_described_reset_and_deleted(
        self, barnabas: Command, cluster_of_address: Cluster
    ) -> None:
        topic, group = cluster_of_address.topic(), cluster_of_address.group()
        cluster_of_address.produce(topic, numbered(4))
        barnabas("share", group, topic, "--accept", "--max", 4)
        (listed,) = [
            row for row in barnabas("groups", "list", "--type", "share", "--lag") if row["group"] == group
        ]
        assert (listed["state"], listed["member_count"]) == ("empty", 0)
        would = barnabas("groups", "reset", group, "--topic", f"{topic}:0", "--to-offset", 1, "--dry-run")
        assert [(row["type"], row["offset"], row["lag"]) for row in would] == [("would_reset", 1, 3)]
        (row,) = barnabas("groups", "reset", group, "--topic", topic, "--to-earliest")
        assert (row["type"], row["offset"]) == ("reset", 0)
        *records, _ = barnabas("share", group, topic, "--accept", "--max", 4)
        assert [one["value"] for one in records] == list(numbered(4))
        barnabas("groups", "delete", group)
        barnabas("groups", "describe", group, exit_code=ExitCode.NOT_FOUND)

    def test_a_group_with_a_member_is_described_and_not_changed(
        self, barnabas: Command, cluster_of_address: Cluster, address: str
    ) -> None:
        topic, group = cluster_of_address.topic(), cluster_of_address.group()
        cluster_of_address.produce(topic, numbered(1))
        consumer = share_consumer(address, group, topic)
        try:
            assert len(poll_some(consumer)) == 1
            _, member, position = barnabas("groups", "describe", group)
            assert member["assignment"] == [{"topic": topic, "partition": 0}]
            assert position["members"] == [member["member_id"]]
            for change in (["delete", group], ["reset", group, "--topic", topic, "--to-latest"]):
                barnabas("groups", *change, exit_code=ExitCode.REFUSED)
                assert f"The group {group} has a member" in barnabas.errors
        finally:
            consumer.close()

    @pytest.mark.parametrize(
        ("goal", "offset"),
        [
            (["--to-latest"], 4),
            (["--to-offset", "99"], 4),
            (["--shift-by", "-1"], 3),
            (["--shift-by", "-99"], 0),
            (["--to-datetime", "2020-01-01"], 0),
            (["--to-datetime", "2099-01-01"], 4),
            (["--by-duration", "1d"], 0),
        ],
    )
    def test_a_consumer_group_is_reset_to_any_place(
        self, barnabas: Command, cluster_of_address: Cluster, goal: list[str], offset: int
    ) -> None:
        topic, group = cluster_of_address.topic(), unique("group")
        cluster_of_address.produce(topic, numbered(4))
        barnabas("consume", topic, "--group", group, "--max", 4)
        (row,) = barnabas("groups", "reset", group, *goal)
        assert (row["before"], row["offset"], row["lag"]) == (4, offset, 4 - offset)
        described, *_ = barnabas("groups", "describe", group)
        assert described["lag"] == 4 - offset

    def test_an_unknown_group_is_named_with_the_nearest_one(
        self, barnabas: Command, cluster_of_address: Cluster
    ) -> None:
        topic, group = cluster_of_address.topic(), cluster_of_address.group()
        cluster_of_address.produce(topic, numbered(1))
        barnabas("share", group, topic, "--accept", "--max", 1)
        barnabas("groups", "delete", f"{group}x", exit_code=ExitCode.NOT_FOUND)
        assert barnabas.errors == f"barnabas: There is no group {group}x; is {group} meant?\n"


def test_a_topic_that_is_deleted_while_topics_are_listed_is_left_out(
    barnabas: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    barnabas("topics", "create", "kept")
    barnabas("topics", "create", "short-lived")
    deleted: list[str] = []

    async def delete_first(admin: AdminConnection, partitions: Collection[Any]) -> Any:
        if not deleted:
            deleted.append("short-lived")
            await delete_topic(admin, "short-lived")
        return await fetch_bounds(admin, partitions)

    monkeypatch.setattr(administration, "fetch_bounds", delete_first)
    listed = names(barnabas, "topics")
    assert deleted
    assert listed & {"kept", "short-lived"} == {"kept"}


def test_a_measurement_removes_its_topics_and_groups(barnabas: Command) -> None:
    topics_before, groups_before = names(barnabas, "topics"), names(barnabas, "groups")
    produced, shared, delays = barnabas("bench", "--records", 1000, "--partitions", 1, "--consumers", 1)
    assert (produced["record_count"], produced["phase"]) == (1000, "produce")
    assert 0 < shared["record_count"] <= 1000
    assert 0 < delays["p50_ms"] <= delays["p99_ms"] <= delays["max_ms"]
    assert names(barnabas, "topics") == topics_before
    assert names(barnabas, "groups") <= groups_before, "those of other tests may end meanwhile"


def names(barnabas: Command, things: str) -> set[str]:
    """The names of all topics or groups."""
    return {row[things.removesuffix("s")] for row in barnabas(things, "list")}


class TestDoctor:
    def test_a_client_sees_the_broker_and_its_advertised_address(self, barnabas: Command) -> None:
        rows = barnabas("doctor", "--client")
        assert [row["check"] for row in rows] == ["broker", "share groups", "advertised address"]
        assert {row["result"] for row in rows} == {"ok"}

    def test_an_address_that_clients_cannot_reach_is_explained(
        self, barnabas_command: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        settings = {**TEST_SETTINGS, "advertised.listeners": "PLAINTEXT://no-such-host.invalid:9092"}
        broker = BrokerProcess(barnabas_command, tmp_path / "data", settings)
        broker.start()
        try:
            *_, row = Command(broker.address, capsys)("doctor", "--client", exit_code=ExitCode.FAILED)
        finally:
            broker.kill()
        assert (row["check"], row["result"]) == ("advertised address", "failure")
        assert "clients are sent to no-such-host.invalid:9092" in row["detail"]
        assert row["remedy"].startswith("Set advertised.listeners=")

    def test_the_machine_of_a_broker_that_runs_is_examined(
        self, own_broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
    ) -> None:
        given = ["doctor", "--listen", own_broker.address, "--data-dir", str(own_broker.data_directory)]
        rows = Command(own_broker.address, capsys)(*given)
        assert {row["check"]: row["result"] for row in rows}["data directory"] == "ok"
        assert "port" not in {row["check"] for row in rows}
        assert main(["topics", "list", "--bootstrap", own_broker.address]) == 0

    def test_a_broker_that_is_not_started_is_no_failure(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        address = f"127.0.0.1:{reserved_port()}"
        given = ["doctor", "--json", "--listen", address, "--data-dir", str(tmp_path / "data")]
        assert main(given) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(row["check"], row["result"]) for row in rows[-2:]] == [("port", "ok"), ("broker", "warning")]
