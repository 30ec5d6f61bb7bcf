"""The page docs/metrics.md has exactly the names that the broker publishes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from barnabas.broker.http import exposition, loop_lag
from tests.broker.metrics.metrics_stage import staged
from tests.conformance.share_member import ACCEPT, REJECT

SOCKETS = "kafka_server_socket_server_metrics"

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"


def documented() -> set[str]:
    """The Prometheus names of all tables."""
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`((?:kafka|barnabas)_[a-z_]+)`", row)}


def families(snapshot: Mapping[str, float]) -> set[str]:
    """The names of a snapshot, without labels and a histogram's parts."""
    names = {key.partition("{")[0] for key in snapshot}
    histograms = {name.removesuffix("_bucket") for name in names if name.endswith("_bucket")}
    parts = {histogram + part for histogram in histograms for part in ("_bucket", "_count", "_sum")}
    return (names - parts) | histograms


async def test_the_document_names_exactly_the_published_metrics() -> None:
    names: set[str] = {
        "barnabas_connections",
        "barnabas_connections_refused_total",
        "barnabas_connections_idle_closed_total",
        "barnabas_tls_handshakes",
        "barnabas_tls_handshakes_failed_total",
        "barnabas_tls_certificate_expiry_timestamp_seconds",
        f"{SOCKETS}_successful_authentication_total",
        f"{SOCKETS}_failed_authentication_total",
        f"{SOCKETS}_successful_reauthentication_total",
        f"{SOCKETS}_failed_reauthentication_total",
        f"{SOCKETS}_expired_connections_killed_count",
    }  # of the server, which a lab does not have
    for store in ("log", "topic"):
        async with staged(share__state__store=store) as stage:
            await stage.member.fetch()
            await stage.member.acknowledge([(0, 8, ACCEPT)])
            # Its topic would have to begin with "dlq.", so the letter cannot be written.
            settings = {
                "errors.deadletterqueue.topic.name": "letters",
                "share.partition.max.record.locks": "100",
            }
            await stage.lab.set_group_configs("group", settings)
            await stage.member.acknowledge([(9, 9, REJECT)])
            await stage.lab.produce(stage.partitions[0].topic_id, 100)
            await stage.member.fetch()
            await stage.lab.advance(1_000)
            names |= families(stage.lab.broker.metrics.snapshot())
            names |= {loop_lag.NAME, exposition.MERGED}  # they exist while HTTP is served
            # Written only once a partition of the topic was pruned.
            names.add("kafka_server_share_coordinator_metrics_last_pruned_offset")
            # Published only while a partition is stalled: tests/conformance/test_delays.py.
            names.add("barnabas_share_delayed_stalled")
    assert names == documented()
