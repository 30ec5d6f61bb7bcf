"""The latest offset of each key in a part of a log, in bounded memory.

Keys of 32 bytes or more are replaced by a digest of 32 bytes (no two inputs with the same digest are known);
shorter keys are kept. Kafka needs 24 bytes for an entry, this map about 200, so a pass covers fewer keys with
the same `log.cleaner.dedupe.buffer.size`.
"""

from __future__ import annotations

from hashlib import blake2b

ENTRY_BYTES = 200
"""The most memory of one key: its bytes, its offset, and their slot in a table that may have just grown."""
_DIGEST_BYTES = 32
_NONE = -1


class OffsetMap:
    """Offsets by key, at most `buffer_bytes` of them."""

    __slots__ = ("_entries_max", "_offset_by_key", "end_offset")

    def __init__(self, buffer_bytes: int) -> None:
        self._entries_max = max(buffer_bytes // ENTRY_BYTES, 1)
        self._offset_by_key: dict[bytes, int] = {}
        self.end_offset = 0
        """All records below this offset (exclusive) were added."""

    def __len__(self) -> int:
        return len(self._offset_by_key)

    @property
    def is_full(self) -> bool:
        return len(self._offset_by_key) >= self._entries_max

    def put(self, key: bytes, offset: int) -> None:
        """Adds a record; offsets must ascend."""
        self._offset_by_key[_known_as(key)] = offset

    def get(self, key: bytes) -> int:
        """The latest offset of the key; -1 for an unknown key."""
        return self._offset_by_key.get(_known_as(key), _NONE)


def _known_as(key: bytes) -> bytes:
    """The key or its digest. They never collide, because an unchanged key is shorter than a digest."""
    return key if len(key) < _DIGEST_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest()
