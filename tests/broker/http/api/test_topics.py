"""Topics over HTTP."""

from __future__ import annotations

import pytest

from tests.broker.http.http_lab import open_http_lab


async def test_a_topic_is_shown_with_its_partitions_and_offsets() -> None:
    async with open_http_lab() as http:
        topic_id = await http.lab.create_topic("t", partition_count=3)
        await http.lab.produce(topic_id, 5, partition=1)
        await http.lab.delete_records("t", 2, partition=1)
        shown = {"name": "t", "topic_id": str(topic_id), "partition_count": 3, "is_internal": False}
        assert await http.json("/api/v1/topics/t") == shown
        page = await http.json("/api/v1/topics/t/partitions?cursor=0&limit=1")
        assert page == {
            "partitions": [
                {
                    "partition": 1,
                    "log_start_offset": 2,
                    "high_watermark": 5,
                    "last_stable_offset": 5,
                    "error": None,
                }
            ],
            "next_cursor": "1",
        }


async def test_a_partition_that_cannot_be_used_has_the_reason() -> None:
    async with open_http_lab() as http:
        topic_id = await http.lab.create_topic("t", partition_count=2)
        with http.lab.broken_disk("t-0"):
            with pytest.raises(AssertionError, match="kafka_storage_error"):
                await http.lab.produce(topic_id, 1)
            broken, sound = (await http.json("/api/v1/topics/t/partitions"))["partitions"]
        assert (broken["high_watermark"], sound["high_watermark"]) == (None, 0)
        assert broken["error"] and sound["error"] is None


async def test_an_unknown_topic_is_not_found() -> None:
    async with open_http_lab() as http:
        for path in ("/api/v1/topics/nothing", "/api/v1/topics/nothing/partitions"):
            response = await http.get(path)
            assert response.status_code == 404
            assert response.json()["kafka_error"] == "UNKNOWN_TOPIC_OR_PARTITION"


async def test_a_topic_is_created_with_its_settings_and_deleted() -> None:
    async with open_http_lab() as http:
        body = {"name": "t", "partition_count": 2, "settings": {"retention.ms": "60000"}}
        created = await http.change("POST", "/api/v1/topics", body)
        assert (created.status_code, created.json()["partition_count"]) == (201, 2)
        config = http.lab.broker.effective_config.topic_config("t")
        assert config.retention_ms == 60_000
        assert (await http.change("POST", "/api/v1/topics", body)).status_code == 409
        assert (await http.change("DELETE", "/api/v1/topics/t")).status_code == 204
        assert (await http.change("DELETE", "/api/v1/topics/t")).status_code == 404


async def test_a_wrong_topic_is_refused_with_the_reason() -> None:
    async with open_http_lab() as http:
        for body, status, reason in (
            ({"name": "a b"}, 400, "ASCII alphanumerics"),
            ({"name": "t", "settings": {"retention": "1"}}, 400, "retention"),
            ({"name": "t", "partition_count": 0}, 422, "partition_count"),
            ({}, 422, "name"),
        ):
            response = await http.change("POST", "/api/v1/topics", body)
            assert response.status_code == status, response.text
            assert reason in response.json()["detail"]


async def test_topics_cannot_be_deleted_if_the_setting_forbids_it() -> None:
    async with open_http_lab({"delete.topic.enable": "false"}) as http:
        await http.lab.create_topic("t")
        response = await http.change("DELETE", "/api/v1/topics/t")
        assert (response.status_code, response.json()["kafka_error"]) == (409, "TOPIC_DELETION_DISABLED")


async def test_a_client_without_the_token_changes_nothing() -> None:
    async with open_http_lab() as http:
        response = await http.client.post("/api/v1/topics", json={"name": "t"})
        assert response.status_code == 401
        assert "t" not in http.lab.broker.metadata.image.topics_by_name
