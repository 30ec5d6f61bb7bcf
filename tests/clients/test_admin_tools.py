"""kafka-topics, kafka-configs, kafka-get-offsets and kafka-groups, as a person runs them."""

import pytest

from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.java_polling import poll_some
from tests.clients.polling import eventually
from tests.clients.share_probe import ShareProbe, ToolResult
from tests.clients.tools import CONFIGS, GET_OFFSETS, GROUPS, TOPICS


@pytest.fixture
def topic(probe: ShareProbe) -> str:
    """A topic of two partitions, created by kafka-topics."""
    name = unique("topic")
    made = probe.tool(
        TOPICS, "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=90000"
    )
    assert (made.exit_code, made.output.strip()) == (0, f"Created topic {name}.")
    return name


def described(probe: ShareProbe, topic: str) -> tuple[str, int]:
    """First line of the topic's description, and the number of partition lines behind it."""
    first, *partitions = probe.tool(TOPICS, "--describe", "--topic", topic).output.splitlines()
    return first, len(partitions)


def configs(probe: ShareProbe, kind: str, name: str, *arguments: str) -> ToolResult:
    """Run kafka-configs for one topic or group."""
    return probe.tool(CONFIGS, "--entity-type", kind, "--entity-name", name, *arguments)


def settings(probe: ShareProbe, kind: str, name: str, *arguments: str) -> dict[str, str]:
    """The settings that kafka-configs describes."""
    _title, *rows = configs(probe, kind, name, "--describe", *arguments).rows()
    return dict(row[0].split("=", 1) for row in rows)


def test_created_topic_is_listed_and_described(probe: ShareProbe, topic: str) -> None:
    assert [topic] in probe.tool(TOPICS, "--list").rows()
    assert [topic] in probe.tool(TOPICS, "--list", "--exclude-internal").rows()
    first, partition_count = described(probe, topic)
    assert "PartitionCount: 2\tReplicationFactor: 1" in first
    assert "retention.ms=90000" in first
    assert partition_count == 2


def test_creating_a_topic_twice_fails_without_if_not_exists(probe: ShareProbe, topic: str) -> None:
    again = probe.tool(TOPICS, "--create", "--topic", topic)
    assert again.exit_code == 1
    assert f"Topic '{topic}' already exists" in again.output
    assert probe.tool(TOPICS, "--create", "--topic", topic, "--if-not-exists").exit_code == 0


def test_a_topic_name_with_illegal_letters_is_refused(probe: ShareProbe) -> None:
    refused = probe.tool(TOPICS, "--create", "--topic", "not/allowed")
    assert refused.exit_code == 1
    assert "not/allowed" in refused.output


def test_alter_adds_partitions_but_removes_none(probe: ShareProbe, topic: str) -> None:
    assert probe.tool(TOPICS, "--alter", "--topic", topic, "--partitions", "4").exit_code == 0
    eventually(lambda: described(probe, topic)[1] == 4, awaited="the topic has 4 partitions")
    fewer = probe.tool(TOPICS, "--alter", "--topic", topic, "--partitions", "1")
    assert fewer.exit_code == 1
    assert "would not be an increase" in fewer.output


def test_deleted_topic_is_gone(probe: ShareProbe, topic: str) -> None:
    assert probe.tool(TOPICS, "--delete", "--topic", topic).exit_code == 0
    eventually(
        lambda: [topic] not in probe.tool(TOPICS, "--list").rows(), awaited="the topic is no longer listed"
    )
    assert probe.tool(TOPICS, "--describe", "--topic", topic).exit_code == 1


def test_topic_settings_are_altered_described_and_deleted(probe: ShareProbe, topic: str) -> None:
    altered = configs(probe, "topics", topic, "--alter", "--add-config", "max.message.bytes=5000")
    assert altered.output.strip() == f"Completed updating config for topic {topic}."
    expected = {"retention.ms": "90000", "max.message.bytes": "5000"}
    eventually(lambda: settings(probe, "topics", topic) == expected, awaited="the new setting shows")
    everything = settings(probe, "topics", topic, "--all")
    assert everything["segment.bytes"] == "1073741824"
    assert everything["max.message.bytes"] == "5000"
    configs(probe, "topics", topic, "--alter", "--delete-config", "max.message.bytes,retention.ms")
    eventually(lambda: settings(probe, "topics", topic) == {}, awaited="the settings are the defaults again")


def test_group_settings_are_altered_described_and_deleted(probe: ShareProbe) -> None:
    group = unique("group")
    new = "share.record.lock.duration.ms=20000,share.isolation.level=read_committed"
    altered = configs(probe, "groups", group, "--alter", "--add-config", new)
    assert altered.output.strip() == f"Completed updating config for group {group}."
    expected = {"share.record.lock.duration.ms": "20000", "share.isolation.level": "read_committed"}
    eventually(lambda: settings(probe, "groups", group) == expected, awaited="the new settings show")
    everything = settings(probe, "groups", group, "--all")
    assert everything["share.delivery.count.limit"] == "5"
    assert everything["share.auto.offset.reset"] == "latest"
    assert everything["share.record.lock.duration.ms"] == "20000"
    listed = probe.tool(CONFIGS, "--entity-type", "groups", "--describe").output
    assert f"Dynamic configs for group {group} are:" in listed
    configs(probe, "groups", group, "--alter", "--delete-config", new.replace("=20000", "").split("=")[0])


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("share.nonsense=1", "Unknown group config"),
        ("share.auto.offset.reset=sometime", "InvalidConfigurationException"),
        ("share.record.lock.duration.ms=999999999", "InvalidConfigurationException"),
        ("share.delivery.count.limit=1", "InvalidConfigurationException"),
    ],
)
def test_wrong_group_settings_are_refused(probe: ShareProbe, setting: str, complaint: str) -> None:
    refused = configs(probe, "groups", unique("group"), "--alter", "--add-config", setting)
    assert refused.exit_code == 1
    assert complaint in refused.errors


def test_get_offsets_prints_both_ends_and_the_newest_record(cluster: Cluster, probe: ShareProbe) -> None:
    topic = cluster.topic()
    cluster.produce(topic, numbered(9))
    cluster.produce(topic, ["the newest"])
    for arguments, offset in [
        ((), 10),
        (("--time", "latest"), 10),
        (("--time", "earliest"), 0),
        (("--time", "max-timestamp"), 9),
        (("--time", "0"), 0),
    ]:
        result = probe.tool(GET_OFFSETS, "--topic-partitions", f"{topic}:0", *arguments)
        assert result.output.strip() == f"{topic}:0:{offset}"
    assert probe.tool(GET_OFFSETS, "--topic", topic).output.strip() == f"{topic}:0:10"


def test_groups_lists_a_share_group_with_its_type(cluster: Cluster, probe: ShareProbe) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, ["one"])
    consumer = probe.consumer(unique("member"), group, [topic])
    poll_some(consumer)
    for arguments in ((), ("--share",), ("--group-type", "share")):
        assert [group, "Share", "share"] in probe.tool(GROUPS, "--list", *arguments).rows()
    consumer.close()
