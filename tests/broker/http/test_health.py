"""Health over HTTP."""

from __future__ import annotations

import pytest

from tests.broker.http.api.working_group import working_group
from tests.broker.http.http_lab import open_http_lab
from tests.conformance.conftest import Stage
from tests.conformance.timed_records import HEADER, Timed, produce_timed


async def test_a_new_broker_is_alive_and_ready() -> None:
    async with open_http_lab() as http:
        assert await http.json("/healthz") == {"status": "alive"}
        assert await http.json("/readyz") == {"status": "ready", "failures": [], "warnings": []}


async def test_a_broker_with_a_full_disk_is_alive_but_not_ready() -> None:
    async with open_http_lab() as http:
        http.lab.broker.log_directory.full_disk.is_full = True
        response = await http.get("/readyz")
        assert response.status_code == 503
        assert response.json()["status"] == "not ready"
        assert [one["state"] for one in response.json()["failures"]] == ["disk full"]
        assert (await http.get("/healthz")).status_code == 200


async def test_a_broker_whose_metadata_log_failed_is_not_ready() -> None:
    async with open_http_lab() as http:
        http.lab.broker.failed.set_result(OSError(5, "Input/output error"))
        response = await http.get("/readyz")
        assert [one["state"] for one in response.json()["failures"]] == ["metadata log failed"]
        http.lab.broker.failed = http.lab.broker.loop.create_future()


async def test_a_partition_that_went_offline_is_a_warning() -> None:
    async with open_http_lab() as http:
        topic_id = await http.lab.create_topic("t")
        await http.lab.produce(topic_id, 1)
        with http.lab.broken_disk("t-0"):
            with pytest.raises(AssertionError, match="kafka_storage_error"):
                await http.lab.produce(topic_id, 1)
            found = await http.json("/readyz")
        assert found["status"] == "ready"
        assert [one["state"] for one in found["warnings"]] == ["partitions offline"]
        assert "t-0" in found["warnings"][0]["detail"]


async def test_a_group_at_its_bound_of_delayed_records_is_a_warning() -> None:
    async with working_group() as group:
        lab = group.http.lab
        await lab.configure_group("group", delay_header=HEADER, delayed_records_max=1)
        await produce_timed(Stage(lab, group.partition), [Timed(delay="1000")] * 2)
        await group.member.fetch()
        found = await group.http.json("/readyz")
        assert found["status"] == "ready"
        assert [one["state"] for one in found["warnings"]] == ["delayed records stalled"]
        assert "such as group" in found["warnings"][0]["detail"]
        await lab.advance(1_010)
        await group.member.fetch()
        await lab.advance(1_010)
        assert (await group.http.json("/readyz"))["warnings"] == []
