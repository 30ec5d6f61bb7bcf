"""The checksums of a log's index files: read when it is opened, and written when its indexes have changed.

Their file is replaced atomically but not durably, like the share snapshot. After a loss of power it may be an
older one. Then the indexes that have changed since are rebuilt, because nothing proves that they are right.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.runtime.logging import get_logger
from barnabas.storage.format.index_checksums import (
    FILE_NAME,
    NOTHING_WRITTEN,
    ChecksumsCorrupt,
    SegmentChecksums,
    decode_index_checksums,
    encode_index_checksums,
)
from barnabas.storage.recovery.hint_files import write_hint
from barnabas.storage.state.log_files import LogPlace, read_file
from barnabas.storage.state.log_state import LogState

logger = get_logger("recovery")


def read_index_checksums(place: LogPlace) -> tuple[bytes | None, Mapping[int, SegmentChecksums]]:
    """The content of the file, and the checksums in it by base offset. For a thread; raises OSError.

    Without them the indexes are trusted until they contradict the log.
    """
    path = f"{place.directory}/{FILE_NAME}"
    data = read_file(place.filesystem, path)
    if data is None:
        return None, {}
    try:
        return data, decode_index_checksums(data)
    except ChecksumsCorrupt as error:
        logger.warning("the checksums of the indexes are damaged, and not used", path=path, reason=str(error))
        return data, {}


async def write_index_checksums(log: LogState) -> None:
    """Writes the file if it is not up to date; see `write_hint`."""
    found = ((segment.base_offset, segment.index_checksums) for segment in log.segments)
    known = {base_offset: checksums for base_offset, checksums in found if checksums is not None}
    if log.index_checksums is None and set(known.values()) <= {NOTHING_WRITTEN}:
        return
    data = encode_index_checksums(known)
    if data == log.index_checksums:
        return
    if await write_hint(log, FILE_NAME, data, "the checksums of the indexes were not written"):
        log.index_checksums = data
