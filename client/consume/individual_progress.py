"""How far one partition is read if its offsets are committed individually: each record by itself. Pure.

    delivered          the application works on these records
    delivered, held    as before, and it will say by itself when each is processed (`async with record`)
    processed          to be committed; offsets that hold no record for any consumer are among them
    committed          left out when they are read again

Offsets that hold no record (transaction markers, gaps of compaction, aborted records) are committed by each
member that has seen them, so that they do not hold the stable offset back. Records outside of the member's
hash range are left to their owners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from barnabas.client.consume.offset_set import OFFSET_MAX, OffsetSet
from barnabas.client.consume.progress import HasOffset, Progress
from barnabas.protocol.committed_ranges import CommittedRanges, OffsetRange
from barnabas.protocol.record_keys import NO_KEY, key_hash
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange

UNCOMMITTED_RANGES_MAX: Final = 1_000_000
"""The most ranges of one partition that may be delivered and not processed. With more, polls raise
`MisuseError`."""


class IndividualProgress(Progress):
    """The offsets of one partition, or of the member's share of it."""

    __slots__ = (
        "_committed",
        "_confirmed",
        "_delivered",
        "_held",
        "_on_processed",
        "_processed",
        "era",
        "hashes",
        "is_full",
        "is_given_up",
    )

    def __init__(self, hashes: HashRange, on_processed: Callable[[], None]) -> None:
        """`on_processed` is called when there is more to commit."""
        super().__init__()
        self.hashes = hashes
        self.is_full = False
        """The broker holds too many ranges of the partition, so it waits until the stable offset moves."""
        self.is_given_up = False
        self.era = 0
        """Counts the seeks: ranges from before one are not given back after it."""
        self._on_processed = on_processed
        self._committed: CommittedRanges | None = None
        self._delivered = OffsetSet()
        self._held: set[int] = set()
        self._processed = OffsetSet()
        self._confirmed: list[OffsetRange] = []
        """Ranges that were committed while the group's offsets are being asked for."""

    # The group's offsets

    @property
    def is_known(self) -> bool:
        """Whether the group's committed offsets are known."""
        return self._committed is not None

    @property
    def begins_at(self) -> int | None:
        """The position behind the stable offset; None while the group's offsets are unknown."""
        return None if self._committed is None else self._committed.stable_offset + 1

    @property
    def sees_all(self) -> bool:
        """Whether the member fetches all batches. One of the sharers does, and commits the offsets that hold
        no record; the broker may leave out such batches for the others.
        """
        return self.hashes.first_hash == ALL_HASHES.first_hash

    def begin(self, committed: CommittedRanges) -> int:
        """The group has committed these offsets. Returns the position at which to begin."""
        self._committed = committed
        committed.commit(self._confirmed)
        self._confirmed.clear()
        return committed.first_uncommitted(0)

    # Reading

    def wants(self, offset: int, key: bytes | None) -> bool:
        """Whether to deliver a record: its key is in the member's range, and it is not committed."""
        hashes = self.hashes
        if hashes != ALL_HASHES and not hashes.has_record(NO_KEY if key is None else key_hash(key), offset):
            return False
        return self._committed is None or offset not in self._committed

    def note_empty(self, first_offset: int, last_offset: int) -> None:
        """No consumer will find a record at these offsets, both inclusive; they may be none."""
        assert self._committed is not None, "a partition is read after its committed offsets are known"
        first_offset = self._committed.first_uncommitted(first_offset)
        if first_offset <= last_offset:
            self._processed.add(first_offset, last_offset)
            self._on_processed()

    def note_log_start(self, log_start_offset: int) -> None:
        """The log has no records before this offset any more."""
        if self._committed is not None:
            self.note_empty(self._committed.stable_offset + 1, log_start_offset - 1)

    def deliver(self, records: Sequence[HasOffset], next_offset: int) -> None:
        self.position = next_offset
        for record in records:
            self._delivered.add(record.offset, record.offset)

    # The application

    def hold(self, offset: int) -> None:
        """The application will say by itself when this record is processed."""
        if offset in self._delivered:
            self._held.add(offset)

    def mark_processed(self, offset: int) -> None:
        self.process([(offset, offset)])

    def settle(self) -> None:
        settled, self._delivered = self._delivered, OffsetSet()
        for offset in self._held:
            settled.take(offset, offset)
            self._delivered.add(offset, offset)
        self._process(settled)

    def process(self, ranges: Iterable[tuple[int, int]]) -> None:
        """The application has processed the records of these ranges that were delivered."""
        found: list[OffsetRange] = []
        for first_offset, last_offset in ranges:
            found += self._delivered.take(first_offset, last_offset)
            if first_offset == last_offset:
                self._held.discard(first_offset)
            else:
                self._held = {
                    held_offset
                    for held_offset in self._held
                    if not first_offset <= held_offset <= last_offset
                }
        self._process(found)

    def process_all(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Like `process`, but all offsets count as processed, also those that were not delivered."""
        given = list(ranges)
        self.process(given)
        self._process(given)

    def _process(self, ranges: OffsetSet | Sequence[tuple[int, int]]) -> None:
        if self.is_given_up or not ranges:
            return
        self._processed.update(ranges)
        self._on_processed()

    def seek(self, offset: int) -> None:
        """Continue at this offset. Records behind it are delivered again unless they are committed."""
        self.position = offset
        self.is_full = False
        self.era += 1
        for some in (self._delivered, self._processed):
            some.take(offset, OFFSET_MAX)
        self._held = {held_offset for held_offset in self._held if held_offset < offset}

    def lose_position(self) -> None:
        self.position = None

    def forget_uncommitted(self) -> None:
        """Records that are not committed will be delivered again, as the group knows them."""
        self.seek(0)
        self.position = None
        self._committed = None

    def give_up(self) -> None:
        """The partition is given up or lost: nothing of it is committed any more."""
        self.is_given_up = True
        self._delivered.take()
        self._processed.take()
        self._held.clear()

    # Commits

    @property
    def processed_count(self) -> int:
        """The number of ranges to commit."""
        return len(self._processed)

    @property
    def delivered_count(self) -> int:
        """The number of ranges of records that are delivered and not processed."""
        return len(self._delivered)

    def take_processed(self) -> list[OffsetRange]:
        """The ranges to commit, ascending. Report the result of each with `note_committed_ranges` or
        `give_back`, and the `era` of now.
        """
        return self._processed.take()

    def give_back(self, ranges: Iterable[OffsetRange], era: int) -> None:
        """These ranges were not committed: they are to be committed later."""
        if era == self.era and not self.is_given_up:
            self._processed.update(ranges)

    def note_committed_ranges(self, ranges: Iterable[OffsetRange]) -> None:
        if self._committed is None:
            self._confirmed += ranges
        else:
            self._committed.commit(ranges)
