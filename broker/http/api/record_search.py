"""Search of records by a text in their keys, headers and values.

The answer has contents of records, so a search needs the token: it is a POST. One search reads a bounded part
of the log, in pieces, for a bounded time; the answer says where to go on. A thread decompresses and searches
the pieces (`batch_search`), while the loop serves the clients of the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from barnabas.broker.http.api.batch_search import BatchSearch
from barnabas.broker.http.api.found_records import FIELDS, Field, FoundRecord
from barnabas.broker.http.api.share_records import Offset, number_in_path
from barnabas.broker.http.api.topics import TOPIC_PATH, find_topic
from barnabas.broker.http.routes import Call, Operation, with_body
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.logging import get_logger
from barnabas.runtime.stepwise import StepwiseWork
from barnabas.storage.errors import CorruptBatch

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.storage.log.partition_log import PartitionLog

log = get_logger("http")

SEARCHED_BYTES_MAX: Final = 8 * 1024 * 1024
"""One search ends after these bytes of batches, as they are in the log."""

DECOMPRESSED_BYTES_MAX: Final = 64 * 1024 * 1024
"""One search ends after these bytes of decompressed batches."""

SEARCH_SECONDS_MAX: Final = 2.0
"""One search ends at the first piece after this time, which includes the wait for other searches."""

MATCHES_MAX: Final = 100
"""The most matches of one search."""

_PIECE_BYTES: Final = 256 * 1024
_PIECE_RECORDS: Final = 1_000
_PIECE_DECOMPRESSED_BYTES: Final = 8 * 1024 * 1024


class RecordSearch(Struct, kw_only=True, forbid_unknown_fields=True):
    """A text to look for, as bytes of UTF-8, in these fields. Capital letters differ from small ones."""

    text: Annotated[str, Meta(min_length=1, max_length=256)]
    fields: Annotated[tuple[Field, ...], Meta(min_length=1)] = FIELDS
    first_offset: Offset | None = None
    """None: the start of the log."""
    limit: Annotated[int, Meta(ge=1, le=MATCHES_MAX)] = 20


class SearchResult(Struct, kw_only=True):
    """The matches, ascending."""

    records: Sequence[FoundRecord]
    next_offset: int | None
    """The first offset that was not searched; null at the end of the log."""
    searched_count: int
    """The records that were searched."""
    skipped_count: int
    """The records that were not searched, because their batches are damaged or too large."""


class SearchRoutes:
    """The operation that finds records."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._work = StepwiseWork(broker.log_directory.filesystem)

    def operations(self) -> Sequence[Operation]:
        return (
            Operation(
                method="POST",
                path=f"{TOPIC_PATH}/partitions/{{partition}}/search",
                handler=with_body(RecordSearch, self._search),
                name="searchRecords",
                summary="Find records by a text in their keys, headers and values",
                tag="topics",
                answer=SearchResult,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
        )

    async def _search(self, call: Call, wanted: RecordSearch) -> SearchResult:
        topic = find_topic(self._broker, call.path)
        partition = number_in_path(call.path, "partition")
        if partition >= len(topic.partitions):
            raise ApiError(
                ErrorCode.unknown_topic_or_partition, f"{topic.name} has no partition {partition}."
            )
        opened = await self._broker.logs.open(topic, partition)
        log.info(
            "a client of HTTP searches records",
            topic=topic.name,
            partition=partition,
            client=call.client,
        )
        return await _search(opened, wanted, self._work)


async def _search(opened: PartitionLog, wanted: RecordSearch, work: StepwiseWork) -> SearchResult:
    """Searches records from the first offset on until a limit is reached. Raises ApiError, StorageError.

    A damaged batch ends the search. A search that begins at one skips it, and so the next search goes on.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SEARCH_SECONDS_MAX
    search = BatchSearch(wanted.text.encode(), wanted.fields, wanted.limit)
    first_offset = opened.log_start_offset if wanted.first_offset is None else wanted.first_offset
    offset = first_offset
    read_bytes = 0
    is_over = False
    while not is_over:
        try:
            read = opened.read_batches(offset, records_max=_PIECE_RECORDS, bytes_max=_PIECE_BYTES)
        except CorruptBatch:
            if offset > first_offset:
                break
            offset = opened.offset_behind_damage(first_offset)
            search.skipped_count += offset - first_offset
            continue
        if not read.batches:
            return _result(search, None)
        read_bytes += len(read.data)
        searched_to = await work.run(search.search(read, offset, _PIECE_DECOMPRESSED_BYTES))
        offset = max(searched_to, opened.log_start_offset)  # records may have been deleted meanwhile
        is_over = (
            search.is_full
            or read_bytes >= SEARCHED_BYTES_MAX
            or search.decompressed_bytes >= DECOMPRESSED_BYTES_MAX
            or loop.time() >= deadline
        )
    return _result(search, offset)


def _result(search: BatchSearch, next_offset: int | None) -> SearchResult:
    return SearchResult(
        records=search.found,
        next_offset=next_offset,
        searched_count=search.searched_count,
        skipped_count=search.skipped_count,
    )
