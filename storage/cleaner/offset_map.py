"""The latest offset of each key in a part of a log, in bounded memory.

Long keys are known by a digest of 32 bytes, which no two keys share as far as anyone knows; shorter ones are
kept as they are. Where Kafka takes 24 bytes an entry, this takes some 200, so that a pass covers fewer keys
of the same `log.cleaner.dedupe.buffer.size`.
"""

from __future__ import annotations

from hashlib import blake2b

ENTRY_BYTES = 200
"""What one key takes at most: its bytes, its offset, and their place in a table that may just have grown."""
_DIGEST_BYTES = 32
_NONE = -1


class OffsetMap:
    """Offsets by key, at most `buffer_bytes` of them."""

    __slots__ = ("_entries_max", "_offset_by_key", "end_offset")

    def __init__(self, buffer_bytes: int) -> None:
        self._entries_max = max(buffer_bytes // ENTRY_BYTES, 1)
        self._offset_by_key: dict[bytes, int] = {}
        self.end_offset = 0
        """Below this (exclusive) every record was taken in."""

    def __len__(self) -> int:
        return len(self._offset_by_key)

    @property
    def is_full(self) -> bool:
        return len(self._offset_by_key) >= self._entries_max

    def put(self, key: bytes, offset: int) -> None:
        """Notes a record; offsets come ascending."""
        self._offset_by_key[_known_as(key)] = offset

    def get(self, key: bytes) -> int:
        """The latest offset of the key; -1 if it isn't known."""
        return self._offset_by_key.get(_known_as(key), _NONE)


def _known_as(key: bytes) -> bytes:
    """Shorter than a digest, or one: the two never meet."""
    return key if len(key) < _DIGEST_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest()
