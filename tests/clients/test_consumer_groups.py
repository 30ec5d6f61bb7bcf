"""Consumers of the new protocol (KIP-848) in groups: Java's and librdkafka's, beside classic ones, and the
view of Kafka's own tools. All tests pass against Apache Kafka, too (`--broker`).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.test_classic_groups import CONSUMER_GROUPS, RECORDS, Member, members, poll_until
from tests.clients.tools import run_tool

STORIES = "barnabas.probe.GroupStories"
NEW_PROTOCOL: dict[str, Any] = {
    "group.protocol": "consumer",
    # The client may not set it in this protocol.
    "session.timeout.ms": None,
    "heartbeat.interval.ms": None,
}


@pytest.mark.parametrize(
    ("story", "lines"),
    [
        (
            "migration",
            [
                "two classic members: Classic cooperative-sticky 2",
                "with a third: Consumer uniform 3",
                "without it: Classic cooperative-sticky 2",
            ],
        ),
        pytest.param(
            "static",
            [
                "a dynamic and a static member: Consumer uniform 2",
                "it is back with its partitions: Consumer uniform 2",
            ],
            marks=pytest.mark.clients,
        ),
        pytest.param(
            "pattern",
            ["two members by a pattern: Consumer range 2", "a wrong pattern: InvalidRegularExpression"],
            marks=pytest.mark.clients,
        ),
    ],
)
def test_javas_consumers_print_the_lines_of_each_story(
    cluster: Cluster, bootstrap: str, story: str, lines: list[str]
) -> None:
    topic = cluster.topic(partition_count=6)
    cluster.produce(topic, numbered(RECORDS))
    assert run_tool(STORIES, bootstrap, topic, story).splitlines() == lines


def test_librdkafkas_consumers_share_commit_and_are_described(cluster: Cluster, bootstrap: str) -> None:
    topic, group = cluster.topic(partition_count=4), unique("group")
    first = Member(bootstrap, group, topic, **NEW_PROTOCOL)
    second = Member(bootstrap, group, topic, **NEW_PROTOCOL)
    with members(first, second) as poll:
        poll_until(
            poll,
            lambda: len(first.consumer.assignment()) == len(second.consumer.assignment()) == 2,
            "they share the partitions",
        )
        cluster.produce(topic, numbered(RECORDS))
        poll_until(poll, lambda: len(first.values) + len(second.values) == RECORDS, "they read all")
        for member in (first, second):
            if member.values:
                member.consumer.commit(asynchronous=False)
        command = (CONSUMER_GROUPS, "--bootstrap-server", bootstrap, "--describe", "--group", group)
        rows = [line.split() for line in run_tool(*command, "--state").splitlines() if line.startswith(group)]
        assert [row[-3:] for row in rows] == [["uniform", "Stable", "2"]]
        rows = [line.split() for line in run_tool(*command).splitlines() if line.startswith(group)]
        assert len(rows) == 4
        assert sum(int(row[3]) for row in rows if row[3] != "-") == RECORDS
        assert {row[5] for row in rows} <= {"0", "-"}
