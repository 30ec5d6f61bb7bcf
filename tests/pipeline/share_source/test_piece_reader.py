"""The rows and errors of a task for batches from a partition's leader."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from barnabas.client.consume.topic_reader import FetchedRecords, TopicReader
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.piece_reader import PieceReader
from barnabas.pipeline.share_source.ranges import AcquiredRange
from barnabas.pipeline.share_source.settings import ShareSettings, parse_settings
from barnabas.pipeline.share_source.splitting import Piece
from barnabas.protocol.identity import TopicIdPartition
from tests.pipeline.decoding.batches import of_offsets

ORDERS = TopicIdPartition(UUID(int=1), 0)


class ScriptedReader:
    """Responds to every request with these batches."""

    def __init__(self, *batches: bytes) -> None:
        self._records = b"".join(batches)

    async def read(
        self, _: TopicIdPartition, ranges: Sequence[tuple[int, int]]
    ) -> AsyncGenerator[FetchedRecords]:
        yield FetchedRecords(memoryview(self._records), (), ranges[-1][1] + 1, 0, ranges[-1][1] + 1)


def settings_of(**options: str) -> ShareSettings:
    return parse_settings(
        {
            "servers": "h:1",
            "group": "g",
            "topics": "orders",
            "columns": "offset,topic,deliveryCount",
            **options,
        }
    )


def rows_of(settings: ShareSettings, reader: ScriptedReader, *ranges: AcquiredRange) -> list[Any]:
    piece = Piece("orders", ORDERS, ranges)
    reading = PieceReader(settings, cast("TopicReader", reader), piece)

    async def read() -> list[Any]:
        return [row async for batch in reading.read() for row in batch.to_pylist()]

    return asyncio.run(read())


def broken(batch: bytes) -> bytes:
    """With one bit flipped in its last byte."""
    return batch[:-1] + bytes([batch[-1] ^ 1])


def test_only_acquired_records_are_rows_each_with_its_delivery_count() -> None:
    reader = ScriptedReader(of_offsets(0, 1, 2, 3), of_offsets(4, 6))
    rows = rows_of(settings_of(), reader, AcquiredRange(1, 2, 1), AcquiredRange(4, 5, 3))
    assert rows == [
        {"offset": 1, "topic": "orders", "deliveryCount": 1},
        {"offset": 2, "topic": "orders", "deliveryCount": 1},
        {"offset": 4, "topic": "orders", "deliveryCount": 3},
    ]


def test_a_corrupt_batch_is_an_error_that_names_the_unread_offsets() -> None:
    reader = ScriptedReader(of_offsets(0, 1), broken(of_offsets(2, 3)), of_offsets(4, 5))
    message = r"^orders-0: offsets 3 to 3 are corrupt: .*checksum.* set onCorrupt=sideTable\.$"
    with pytest.raises(PipelineError, match=message):
        rows_of(settings_of(), reader, AcquiredRange(0, 1, 1), AcquiredRange(3, 5, 1))


@pytest.mark.parametrize("is_last", [False, True])
def test_a_corrupt_batch_is_noted_with_the_side_table(tmp_path: Path, is_last: bool) -> None:
    behind = [] if is_last else [of_offsets(4, 5)]
    reader = ScriptedReader(of_offsets(0, 1), broken(of_offsets(2, 3)), *behind)
    settings = settings_of(onCorrupt="sideTable", sideTable=str(tmp_path))
    rows = rows_of(settings, reader, AcquiredRange(0, 3 if is_last else 5, 1))
    assert [row["offset"] for row in rows] == ([0, 1] if is_last else [0, 1, 4, 5])
    (path,) = tmp_path.glob("*.json")
    noted = json.loads(path.read_text())
    assert (noted["topic"], noted["partition"], noted["firstOffset"], noted["lastOffset"]) == (
        "orders",
        0,
        2,
        3,
    )
    assert "checksum" in noted["reason"]
