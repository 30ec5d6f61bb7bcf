"""Metrics of requests by API, with and without a wait."""

from __future__ import annotations

from barnabas.broker.network.request_metrics import RequestMeasures
from tests.conformance.harness import open_lab

PREFIX = "kafka_network_requestmetrics_"


async def test_requests_are_counted_by_api_and_version() -> None:
    async with open_lab() as lab:
        client = lab.client()
        for version in (3, 5, 5):
            await client.ask("list_groups", version)
        snapshot = lab.broker.metrics.snapshot()
    counts = {name: value for name, value in snapshot.items() if name.startswith(PREFIX + "requests_total")}
    assert counts == {
        PREFIX + "requests_total{request=ListGroups,version=3}": 1,
        PREFIX + "requests_total{request=ListGroups,version=5}": 2,
    }
    assert snapshot[PREFIX + "requestbytes_count{request=ListGroups}"] == 3
    assert snapshot[PREFIX + "requestbytes_sum{request=ListGroups}"] > 30


async def test_the_time_of_a_request_that_waits_is_remote_time() -> None:
    async with open_lab() as lab:
        await lab.create_topic("t")
        client = lab.client()
        await client.ask("fetch", 12, **fetch("t", max_wait_ms=0))
        waiting = client.send("fetch", 12, **fetch("t", max_wait_ms=500))
        await lab.advance(500)
        await client.answered(waiting)
        snapshot = lab.broker.metrics.snapshot()
    sums = {
        part: (
            snapshot[f"{PREFIX}{part}timems_count{{request=Fetch}}"],
            snapshot[f"{PREFIX}{part}timems_sum{{request=Fetch}}"],
        )
        for part in ("local", "remote", "total")
    }
    assert sums == {"local": (2, 0), "remote": (2, 500), "total": (2, 500)}
    assert snapshot[PREFIX + "remotetimems_bucket{le=0,request=Fetch}"] == 1


def fetch(topic: str, *, max_wait_ms: int) -> dict[str, object]:
    """The fields of a Fetch of one partition from its start."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}
    return {
        "max_wait": max_wait_ms,
        "min_bytes": 1,
        "topics": [{"topic": topic, "partitions": [partition]}],
    }


def test_throttle_time_is_counted_separately() -> None:
    measures = RequestMeasures()
    measures.answered_at_once(1, 0)
    measures.answered_at_once(1, 700)
    measures.waited(1, 20, 30)
    assert (measures.throttle_ms().count, measures.throttle_ms().total) == (3, 730)
    assert (measures.total_ms().count, measures.total_ms().total) == (3, 23)
