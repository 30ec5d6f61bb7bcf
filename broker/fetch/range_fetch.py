"""The part of one partition in a fetch by a range of keys' hashes (docs/protocol.md).

The broker looks at the batches from the fetch offset on, and leaves out those without a record in the range.
The response states the offset up to which it has looked, so the client's position advances also without
records.

- While a fetch waits, each new batch is looked at once, when it arrives. The wait goes on until the requested
  bytes are there, or its time is over. It also ends when one wake-up finds more batches than `LOOK_BYTES`.
- The response is read in turns. It ends when it has its bytes of records, at the end of the log, or when
  `LEFT_OUT_BYTES_MAX` bytes were left out. So a client far behind gets a response, with or without records,
  that moves its position by that many bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.fetch.partition_fetch import (
    READ_COMMITTED,
    diverging_at,
    open_log,
    refused,
    result_of,
    upper_offset_of,
)
from barnabas.broker.sessions.fetch_sessions import WantedPartition
from barnabas.protocol.encode.fetch import FetchPartitionResult
from barnabas.protocol.errors import ApiError
from barnabas.protocol.extended.packed import unpack_hash_range
from barnabas.protocol.record_keys.buckets import buckets_of_range
from barnabas.runtime.turns import Turns
from barnabas.storage.errors import StorageError
from barnabas.storage.reading.range_reader import RangeSlice

if TYPE_CHECKING:
    from barnabas.storage.log.partition_log import PartitionLog

LOOK_BYTES: Final = 64 * 1024
"""The bytes that are looked at without a pause; also the most at one wake-up of a waiting fetch, over all of
its partitions."""
LEFT_OUT_BYTES_MAX: Final = 1024 * 1024
"""The most bytes that one response leaves out, over all of its partitions: as many as an ordinary consumer
would get with its default max.partition.fetch.bytes."""

_STEPS_PER_LOOK: Final = 1_000
"""The steps of a turn that a look uses: up to 3 ms, if the batches are small and their keys are not hashed
yet. Batches that inflate a hundredfold take up to 30 ms once."""


class LookLimit:
    """The bytes that may still be looked at."""

    __slots__ = ("bytes_left",)

    def __init__(self, bytes_max: int) -> None:
        self.bytes_left = bytes_max


class RangeSearch:
    """The progress of a fetch that waits, in one partition."""

    __slots__ = ("_first_wanted", "_wanted_bytes", "buckets", "fetch_offset", "looked_until")

    def __init__(self, partition: WantedPartition, log: PartitionLog) -> None:
        """Raises INVALID_REQUEST for a malformed hash range, OFFSET_OUT_OF_RANGE, StorageError."""
        assert partition.asked.hash_range is not None
        self.buckets = buckets_of_range(unpack_hash_range(partition.asked.hash_range))
        # A check of the offset: no look may follow.
        log.available_bytes(partition.asked.fetch_offset, enough=1)
        self.fetch_offset = self.looked_until = partition.asked.fetch_offset
        self._first_wanted: int | None = None
        self._wanted_bytes = 0

    @property
    def start_offset(self) -> int:
        """The offset at which the response begins to read: all batches before it are left out."""
        return self.looked_until if self._first_wanted is None else self._first_wanted

    def available_bytes(
        self, log: PartitionLog, isolation_level: int, *, enough: int, limit: LookLimit
    ) -> int:
        """The bytes of the wanted batches, counted up to about `enough`. It is also `enough` if `limit` ends
        the look, because the response must look at the rest.
        """
        upper_offset = upper_offset_of(log, isolation_level)
        while self._wanted_bytes < enough and self.looked_until < upper_offset:
            if limit.bytes_left <= 0:
                return enough
            looked = _look(log, self.looked_until, self.buckets, isolation_level)
            wanted = looked.wanted.batches
            if wanted and self._first_wanted is None:
                self._first_wanted = max(wanted[0].base_offset, self.looked_until)
            wanted_bytes = sum([span.end - span.start for span in wanted])
            self._wanted_bytes += wanted_bytes
            self.looked_until = looked.looked_until
            limit.bytes_left -= wanted_bytes + looked.left_out_bytes
        return self._wanted_bytes


Searches = dict[WantedPartition, RangeSearch]
"""The searches of one fetch."""


def available_in_range(
    partition: WantedPartition, searches: Searches, isolation_level: int, *, enough: int, limit: LookLimit
) -> int:
    """See `partition_fetch.available_bytes`."""
    log = open_log(partition)
    if diverging_at(log, partition) is not None:
        return enough
    search = _search_of(partition, log, searches)
    available = search.available_bytes(log, isolation_level, enough=enough, limit=limit)
    return min(available, max(partition.asked.partition_max_bytes, 1))


async def read_in_range(
    partition: WantedPartition,
    searches: Searches,
    isolation_level: int,
    bytes_max: int,
    *,
    at_least_one: bool,
    limit: LookLimit,
    turns: Turns,
) -> FetchPartitionResult:
    """The partition's part of the response. `limit` is for bytes that are left out."""
    try:
        log = open_log(partition)
        diverging = diverging_at(log, partition)
        if diverging is not None:
            return result_of(partition, log, None, (), diverging)
        search = _search_of(partition, log, searches)
        records, looked_until = await _read(
            log, search, isolation_level, bytes_max, at_least_one=at_least_one, limit=limit, turns=turns
        )
    except (ApiError, StorageError) as error:
        return refused(partition, error.code)
    aborted = () if isolation_level == READ_COMMITTED else None
    return result_of(partition, log, aborted, records)._replace(looked_until=looked_until)


async def _read(
    log: PartitionLog,
    search: RangeSearch,
    isolation_level: int,
    bytes_max: int,
    *,
    at_least_one: bool,
    limit: LookLimit,
    turns: Turns,
) -> tuple[list[bytes], int]:
    """The records, and the offset up to which the log was looked at."""
    records: list[bytes] = []
    offset, bytes_left = search.start_offset, bytes_max
    while offset < upper_offset_of(log, isolation_level):
        if limit.bytes_left <= 0 or (bytes_left <= 0 and not at_least_one):
            break
        try:
            looked = _look(log, offset, search.buckets, isolation_level)
        except StorageError:
            if offset > search.fetch_offset:
                break  # the next request begins here, and gets the error
            raise
        fitting = _fitting(looked, bytes_left, at_least_one=at_least_one)
        if fitting.data:
            records.append(fitting.data)
            bytes_left -= len(fitting.data)
            at_least_one = False
        limit.bytes_left -= looked.left_out_bytes
        offset = max(fitting.looked_until, offset)
        if fitting.is_cut:
            break
        await turns.took(_STEPS_PER_LOOK)
    return records, offset


class _Fitting(NamedTuple):
    """The wanted batches of one look that fit into a response."""

    data: bytes
    """A copy without the batches that are left out, which would otherwise stay in memory."""
    looked_until: int
    is_cut: bool
    """Whether a wanted batch did not fit."""


def _fitting(looked: RangeSlice, bytes_max: int, *, at_least_one: bool) -> _Fitting:
    count, bytes_left = 0, bytes_max
    for span in looked.wanted.batches:
        bytes_left -= span.end - span.start
        if bytes_left < 0 and not (at_least_one and count == 0):
            break
        count += 1
    is_cut = count < len(looked.wanted.batches)
    looked_until = looked.wanted.batches[count].base_offset if is_cut else looked.looked_until
    return _Fitting(b"".join(looked.wanted.pieces(0, count)), looked_until, is_cut)


def _search_of(partition: WantedPartition, log: PartitionLog, searches: Searches) -> RangeSearch:
    """The search in this partition, which begins with the first call; see `RangeSearch` for the errors."""
    search = searches.get(partition)
    if search is None:
        search = searches[partition] = RangeSearch(partition, log)
    return search


def _look(log: PartitionLog, offset: int, buckets: int, isolation_level: int) -> RangeSlice:
    return log.key_ranges.look(
        offset,
        buckets,
        bytes_max=LOOK_BYTES,
        upper_offset=upper_offset_of(log, isolation_level),
        committed_only=isolation_level == READ_COMMITTED,
    )
