"""The keys of the records that producers send, in runs with share groups in the order of keys, and the forms
of their batches: compressed or not, and of more records than the broker hashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from barnabas.protocol.compression import compress
from barnabas.protocol.record_batch import (
    HEADER_BYTES,
    Compression,
    read_header,
    reseal_batch,
)

_WITHOUT_KEY = 0.1
_CODECS = (Compression.NONE, Compression.NONE, Compression.GZIP, Compression.LZ4, Compression.ZSTD)


class OrderSettings(NamedTuple):
    """The part of a scenario that is about the order of keys."""

    group_ids: tuple[str, ...] = ()
    """The share groups that begin with `share.order=key`."""
    key_count: int = 0
    """0 if no record has a key."""
    compacts: bool = False
    """Whether topics may be compacted. Then each record has a key."""
    hashed_records_max: int = 50_000
    """A batch of more records is delivered alone."""


NO_ORDER = OrderSettings()


def draw_order(random: Random) -> OrderSettings:
    """Four of ten runs have a group in the order of keys."""
    if random.random() >= 0.4:
        return NO_ORDER
    compacts = random.random() < 0.3
    return OrderSettings(
        ("red",),
        random.choice((1, 8, 8, 40, 1000)),
        compacts,
        50_000 if compacts else random.choice((50_000, 50_000, 6)),
    )


class KeyedRecords:
    """Draws the keys of records, and knows the key of each value."""

    def __init__(self, random: Random, settings: OrderSettings) -> None:
        self._random = random
        self._settings = settings
        self._key_of: dict[bytes, bytes | None] = {}
        self._large_batch_of: dict[bytes, bytes] = {}

    @property
    def compacts(self) -> bool:
        """Whether topics may be compacted."""
        return self._settings.compacts

    def records(self, values: Sequence[bytes]) -> list[tuple[bytes | None, bytes]]:
        """The records of one batch. A batch that is sent again has the same keys."""
        if not self._settings.key_count:
            return [(None, value) for value in values]
        if len(values) > self._settings.hashed_records_max:
            self._large_batch_of |= dict.fromkeys(values, b"the batch of " + values[0])
        return [(self._key_of.setdefault(value, self._draw()), value) for value in values]

    def packed(self, batch: bytes) -> bytes:
        """The batch, possibly compressed."""
        if not self._settings.key_count:
            return batch
        codec = self._random.choice(_CODECS)
        if codec is Compression.NONE:
            return batch
        header = read_header(batch)
        header = header._replace(attributes=header.attributes | codec)
        return reseal_batch(header, compress(codec, batch[HEADER_BYTES:]))

    def key_of(self, value: bytes | None) -> bytes | None:
        """None if the value has no key, or is unknown."""
        return None if value is None else self._key_of.get(value)

    def large_batch_of(self, value: bytes | None) -> bytes | None:
        """A name of the value's batch, if that has more records than the broker hashes."""
        return None if value is None else self._large_batch_of.get(value)

    def _draw(self) -> bytes | None:
        if not self._settings.compacts and self._random.random() < _WITHOUT_KEY:
            return None
        return b"key-%d" % self._random.randrange(self._settings.key_count)
