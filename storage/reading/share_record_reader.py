"""Finds and reads the share state of one log: the checkpoints of its groups, and any control record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.storage.format.share_index import ShareIndexEntry
from barnabas.storage.reading.read_errors import Reads
from barnabas.storage.reading.share_lookup import newest_entries, read_share_record
from barnabas.storage.reading.verification import Verification
from barnabas.storage.state.log_state import LogState


class ShareRecordReader:
    """Reads one log. Used on the loop's thread only."""

    __slots__ = ("_log", "_reads", "_verification")

    def __init__(self, log: LogState, verification: Verification, reads: Reads) -> None:
        self._log = log
        self._verification = verification
        self._reads = reads

    @property
    def checkpoint_offsets(self) -> Mapping[str, int]:
        """The share checkpoint offset (SCO) of each live share group, by group id."""
        return self._log.share_heads.live()

    def may_have_state(self, group_id: str) -> bool:
        """Whether the group may have state here; if False, the share indexes need not be searched."""
        return self._log.share_heads.may_have_state(group_id)

    @property
    def earliest_offset(self) -> int:
        """The lowest SCO (ESO), or the log's end without any. No group needs control records below it."""
        return self._log.share_heads.earliest_offset(self._log.log_end_offset)

    def newest(self, group_hash: int, down_to_offset: int = 0) -> Iterator[ShareIndexEntry]:
        """The share index's entries of the groups with this hash, the newest first; see `newest_entries`.

        Raises StorageError.
        """
        self._log.check_online()
        with self._reads:
            yield from newest_entries(self._log.segments, group_hash, down_to_offset)

    def read(self, entry: ShareIndexEntry) -> tuple[int, ShareCheckpoint | ShareDelta]:
        """(offset, record) of an entry; the record names its group. StorageError, ShareStateLost."""
        self._log.check_online()
        segment = self._log.segments.floor(entry.offset)
        with self._reads:
            return read_share_record(segment, entry, self._verification)
