"""Search of records by a text in their keys, headers and values.

The answer has contents of records, so a search needs the token: it is a POST. One search reads a bounded part
of the log, in pieces, between which other work runs; the answer says where to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct

from barnabas.broker.http.api.share_records import Offset, number_in_path
from barnabas.broker.http.api.topics import TOPIC_PATH, find_topic
from barnabas.broker.http.routes import Call, Operation, with_body
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.records import Record
from barnabas.runtime.logging import get_logger
from barnabas.share.dead_letters.batch_records import batch_records

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.storage.log.partition_log import PartitionLog

log = get_logger("http")

SEARCHED_BYTES_MAX: Final = 8 * 1024 * 1024
"""One search ends after these bytes of batches, as they are in the log."""

MATCHES_MAX: Final = 100
"""The most matches of one search."""

SHOWN_CHARACTERS_MAX: Final = 1_000
"""A longer key or value is cut in the answer."""

SHOWN_HEADERS_MAX: Final = 100
"""Further headers are left out of the answer."""

_PIECE_BYTES: Final = 256 * 1024
_PIECE_RECORDS: Final = 1_000
_DECOMPRESSED_BYTES_MAX: Final = 8 * 1024 * 1024
"""A larger batch is not searched: it would keep the loop busy."""

Field = Literal["key", "header", "value"]
FIELDS: tuple[Field, ...] = ("key", "header", "value")


class RecordSearch(Struct, kw_only=True, forbid_unknown_fields=True):
    """A text to look for, as bytes of UTF-8, in these fields. Capital letters differ from small ones."""

    text: Annotated[str, Meta(min_length=1, max_length=256)]
    fields: Annotated[tuple[Field, ...], Meta(min_length=1)] = FIELDS
    first_offset: Offset | None = None
    """None: the begin of the log."""
    limit: Annotated[int, Meta(ge=1, le=MATCHES_MAX)] = 20


class FoundHeader(Struct, kw_only=True):
    """A header; its value as text, with replacement characters for bytes that are not UTF-8."""

    name: str
    value: str | None


class FoundRecord(Struct, kw_only=True):
    """A record that has the text. `key` and `value` are text, as in a header."""

    offset: int
    timestamp_ms: int
    key: str | None
    value: str | None
    headers: Sequence[FoundHeader]
    found_in: Sequence[Field]


class SearchResult(Struct, kw_only=True):
    """The matches, ascending."""

    records: Sequence[FoundRecord]
    next_offset: int | None
    """The first offset that was not searched; null at the end of the log."""
    searched_count: int
    """The records that were read."""


class SearchRoutes:
    """The operation that finds records."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

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
        return await search(opened, wanted)


async def search(opened: PartitionLog, wanted: RecordSearch) -> SearchResult:
    """Reads records from the first offset on until a limit is reached. Raises ApiError, StorageError."""
    offset = opened.log_start_offset if wanted.first_offset is None else wanted.first_offset
    text = wanted.text.encode()
    found: list[FoundRecord] = []
    searched_count = searched_bytes = 0
    while searched_bytes < SEARCHED_BYTES_MAX:
        read = opened.read_batches(offset, records_max=_PIECE_RECORDS, bytes_max=_PIECE_BYTES)
        if not read.batches:
            return SearchResult(records=found, next_offset=None, searched_count=searched_count)
        for record in batch_records(read, decompressed_bytes_max=_DECOMPRESSED_BYTES_MAX):
            if record.offset < offset:
                continue
            searched_count += 1
            found_in: list[Field] = [field for field in wanted.fields if text in _content(record, field)]
            if found_in:
                found.append(_found(record, found_in))
            if len(found) == wanted.limit:
                return SearchResult(
                    records=found, next_offset=record.offset + 1, searched_count=searched_count
                )
        offset = read.batches[-1].last_offset + 1
        searched_bytes += len(read.data)
        await asyncio.sleep(0)
    return SearchResult(records=found, next_offset=offset, searched_count=searched_count)


def _content(record: Record, field: Field) -> bytes:
    """The bytes of the field; the names and values of all headers, one after the other."""
    if field == "key":
        return record.key or b""
    if field == "value":
        return record.value or b""
    return b"\n".join(_header_bytes(record))


def _header_bytes(record: Record) -> Iterator[bytes]:
    for name, value in record.headers:
        yield name.encode()
        yield value or b""


def _found(record: Record, found_in: Sequence[Field]) -> FoundRecord:
    return FoundRecord(
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=_text(record.key),
        value=_text(record.value),
        headers=[
            FoundHeader(name=name, value=_text(value)) for name, value in record.headers[:SHOWN_HEADERS_MAX]
        ],
        found_in=found_in,
    )


def _text(content: bytes | None) -> str | None:
    """The begin of the content as text."""
    return None if content is None else content.decode("utf-8", "replace")[:SHOWN_CHARACTERS_MAX]
