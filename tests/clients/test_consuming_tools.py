"""kafka-console-share-consumer and kafka-verifiable-share-consumer, as a person runs them."""

import json
import subprocess

from tests.clients.cluster import Cluster, numbered
from tests.clients.java_build import java_classpath, require
from tests.clients.java_polling import wait_for_lag
from tests.clients.raw_frames import (
    INVALID_RECORD,
    MALFORMED_RECORDS,
    RawConnection,
    produce_error,
    produce_request,
)
from tests.clients.share_probe import TIMEOUT_MS, ShareProbe, ToolResult
from tests.clients.tools import CONSOLE_SHARE_CONSUMER, VERIFIABLE_SHARE_CONSUMER


def console(probe: ShareProbe, group: str, topic: str, count: int, *arguments: str) -> ToolResult:
    """Consume some records with the console share consumer."""
    limits = ("--max-messages", str(count), "--timeout-ms", str(TIMEOUT_MS))
    return probe.tool(CONSOLE_SHARE_CONSUMER, "--topic", topic, "--group", group, *limits, *arguments)


def test_console_share_consumer_accepts_the_records_it_prints(cluster: Cluster, probe: ShareProbe) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(6))
    assert console(probe, group, topic, 4).output.splitlines() == numbered(6)[:4]
    assert console(probe, group, topic, 2).output.splitlines() == numbered(6)[4:]
    wait_for_lag(probe, group, 0)


def test_console_share_consumer_rejects_for_good(cluster: Cluster, probe: ShareProbe) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(3))
    assert console(probe, group, topic, 3, "--reject").output.splitlines() == numbered(3)
    wait_for_lag(probe, group, 0)


def test_console_share_consumer_releases_for_the_next(cluster: Cluster, probe: ShareProbe) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(3))
    assert console(probe, group, topic, 3, "--release").output.splitlines() == numbered(3)
    wait_for_lag(probe, group, 3)
    printed = console(probe, group, topic, 3, "--formatter-property", "print.delivery=true").output
    assert printed.splitlines() == [f"Delivery:2\t{value}" for value in numbered(3)]


def test_console_share_consumer_prints_the_records_behind_malformed_batches(
    cluster: Cluster, probe: ShareProbe
) -> None:
    topic, group = cluster.topic(), cluster.group()
    with RawConnection(cluster.bootstrap) as connection:
        for batch in MALFORMED_RECORDS.values():
            request = produce_request(topic, batch.encode())
            assert produce_error(connection.exchange(request)) == INVALID_RECORD
    cluster.produce(topic, numbered(3))
    assert console(probe, group, topic, 3).output.splitlines() == numbered(3)
    wait_for_lag(probe, group, 0)


def test_verifiable_share_consumer_acknowledges_every_record(cluster: Cluster, probe: ShareProbe) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(20))
    done = subprocess.run(
        [
            *(require("java"), "-XX:TieredStopAtLevel=1", "-cp", java_classpath()),
            *(VERIFIABLE_SHARE_CONSUMER, "--bootstrap-server", cluster.bootstrap),
            *("--topic", topic, "--group-id", group, "--max-messages", "20"),
            *("--acknowledgement-mode", "async", "--offset-reset-strategy", "earliest"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    names = {event["name"] for event in events}
    assert {"startup_complete", "records_consumed", "offsets_acknowledged", "shutdown_complete"} <= names
    acknowledged = [event for event in events if event["name"] == "offsets_acknowledged"]
    assert all(event["success"] for event in acknowledged)
    assert sum(event["count"] for event in acknowledged) == 20
    wait_for_lag(probe, group, 0)
