"""Records are found by a text in their keys, headers and values."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.broker.http.api import batch_search, record_search
from barnabas.broker.http.api.found_records import SHOWN_CHARACTERS_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.records import Record, encode_records
from tests.broker.http.http_lab import HttpLab, open_http_lab, serve_http
from tests.conformance.dead_lettering import records_of
from tests.conformance.harness import DATA_DIRECTORY, produce_fields, settle

LOG_PATH = f"{DATA_DIRECTORY}/t-0/{0:020d}.log"
SEARCH = "/api/v1/topics/t/partitions/0/search"
RECORDS = (
    Record(0, 1_000, b"customer-1", b"pay 5", (("trace", b"abc"),)),
    Record(1, 1_001, None, b"pay 7", ()),
    Record(2, 1_002, b"customer-7", None, (("trace", None), ("retry", b"\xff7"))),
)


@asynccontextmanager
async def topic_with(*batches: bytes, **configs: str) -> AsyncGenerator[HttpLab]:
    async with open_http_lab() as http:
        topic_id = await http.lab.create_topic("t", 1, **configs)
        client = http.lab.client("producer")
        for batch in batches:
            await client.ask("produce", **produce_fields(topic_id, 0, batch))
        yield http


async def search(http: HttpLab, **body: object) -> Any:
    response = await http.change("POST", SEARCH, body)
    assert response.status_code == 200, response.text
    return response.json()


def offsets(result: Any) -> list[int]:
    return [one["offset"] for one in result["records"]]


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4, Compression.ZSTD])
async def test_a_text_is_found_in_each_field(compression: Compression) -> None:
    async with topic_with(encode_records(RECORDS, compression=compression)) as http:
        assert offsets(await search(http, text="7")) == [1, 2]
        assert offsets(await search(http, text="7", fields=["value"])) == [1]
        assert offsets(await search(http, text="7", fields=["key"])) == [2]
        assert offsets(await search(http, text="retry", fields=["header"])) == [2]
        assert offsets(await search(http, text="abc")) == [0]
        result = await search(http, text="Customer")
        assert (result["records"], result["next_offset"]) == ([], None)
        assert (result["searched_count"], result["skipped_count"]) == (3, 0)


async def test_a_match_has_the_record_as_text() -> None:
    async with topic_with(encode_records(RECORDS)) as http:
        [found] = (await search(http, text="7", fields=["key", "header"]))["records"]
        assert found == {
            "offset": 2,
            "timestamp_ms": 1_002,
            "key": "customer-7",
            "value": None,
            "headers": [{"name": "trace", "value": None}, {"name": "retry", "value": "\ufffd7"}],
            "found_in": ["key", "header"],
        }


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("SEARCHED_BYTES_MAX", 1),
        ("DECOMPRESSED_BYTES_MAX", 1),
        ("SEARCH_SECONDS_MAX", 0.0),
        ("MATCHES_MAX", 100),
    ],
)
async def test_searches_continue_where_the_last_one_ended(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: float
) -> None:
    monkeypatch.setattr(record_search, limit, value)
    monkeypatch.setattr(record_search, "_PIECE_RECORDS", 1)
    batches = [encode_records([Record(0, 1_000, None, b"pay %d" % index)]) for index in range(3)]
    async with topic_with(*batches) as http:
        begin: int | None = 0
        answers: list[list[int]] = []
        while begin is not None:
            result = await search(http, text="pay", first_offset=begin)
            answers.append(offsets(result))
            begin = result["next_offset"]
        assert answers == ([[0, 1, 2]] if limit == "MATCHES_MAX" else [[0], [1], [2], []])


async def test_the_last_match_of_a_full_answer_ends_a_search() -> None:
    async with topic_with(encode_records(RECORDS)) as http:
        result = await search(http, text="pay", limit=1)
        assert (offsets(result), result["next_offset"], result["searched_count"]) == ([0], 1, 1)
        assert offsets(await search(http, text="pay", limit=1, first_offset=1)) == [1]


async def test_the_broker_serves_its_clients_while_a_thread_searches() -> None:
    async with topic_with(encode_records(RECORDS)) as http:
        topic_id = http.lab.broker.metadata.image.topics_by_name["t"].topic_id
        client = http.lab.client()
        with http.lab.stalled_disk():
            searching = asyncio.create_task(search(http, text="7"))
            await settle()
            produced = await client.ask("produce", **produce_fields(topic_id, 0, encode_records(RECORDS)))
            fetched = await records_of(http.lab, topic_id, 0)
            assert not searching.done()
        assert produced.responses[0].partition_responses[0].error_code is ErrorCode.none
        assert len(fetched) == 2 * len(RECORDS)
        assert offsets(await searching) == [1, 2, 4, 5]


async def test_records_of_a_batch_that_is_too_large_are_counted_but_not_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = encode_records(RECORDS)
    large = encode_records([Record(index, 1_000, None, b"7" * 100) for index in range(20)])
    monkeypatch.setattr(batch_search, "BATCH_BYTES_MAX", 1_000)
    async with topic_with(large, small) as http:
        result = await search(http, text="7")
        assert (offsets(result), result["skipped_count"]) == ([21, 22], 20)


async def test_a_damaged_batch_ends_a_search_and_the_next_search_skips_it() -> None:
    batch = encode_records(RECORDS)
    async with topic_with(batch, batch, batch, batch, index__interval__bytes="1") as http:
        for damaged in (1, 2):
            http.lab.filesystem.files[LOG_PATH][(damaged + 1) * len(batch) - 1] ^= 1
        await http.lab.restart()
        async with serve_http(http.lab) as restarted:
            begin: int | None = 0
            answers: list[tuple[list[int], int, int]] = []
            while begin is not None:
                result = await search(restarted, text="7", first_offset=begin)
                answers.append((offsets(result), result["searched_count"], result["skipped_count"]))
                begin = result["next_offset"]
    assert answers == [([1, 2], 3, 0), ([10, 11], 3, 6)]


async def test_a_search_skips_a_damaged_last_batch() -> None:
    batch = encode_records(RECORDS)
    async with topic_with(batch, batch) as http:
        http.lab.filesystem.files[LOG_PATH][-1] ^= 1
        await http.lab.restart()
        async with serve_http(http.lab) as restarted:
            first = await search(restarted, text="7")
            second = await search(restarted, text="7", first_offset=first["next_offset"])
    assert (offsets(first), first["next_offset"]) == ([1, 2], 3)
    assert (offsets(second), second["next_offset"], second["skipped_count"]) == ([], None, 3)


async def test_a_search_needs_the_token_and_bounded_parameters() -> None:
    async with topic_with(encode_records(RECORDS)) as http:
        response = await http.client.post(SEARCH, json={"text": "7"})
        assert response.status_code == 401
        refused: Sequence[object] = (
            {"text": ""},
            {"text": "7", "limit": 101},
            {"text": "7", "fields": [""]},
            {},
        )
        for body in refused:
            assert (await http.change("POST", SEARCH, body)).status_code == 422
        response = await http.change("POST", SEARCH, {"text": "7", "first_offset": 99})
        assert response.json()["kafka_error"] == "OFFSET_OUT_OF_RANGE"
        response = await http.change("POST", SEARCH.replace("/0/", "/9/"), {"text": "7"})
        assert response.status_code == 404


async def test_long_contents_are_cut() -> None:
    value = b"x" * (SHOWN_CHARACTERS_MAX + 1)
    async with topic_with(encode_records([Record(0, 1_000, None, value)])) as http:
        [found] = (await search(http, text="xx"))["records"]
        assert len(found["value"]) == SHOWN_CHARACTERS_MAX
