"""The order of a share-partition's keys (`share.order=key`): the records that may be delivered now.

Records with equal hashes of their keys count as records of one key. A key is *free* while no member holds a
record of it. Then its first unfinished record can be delivered, and the next ones together with it, to the
same member; `run_max` bounds this *run*. The next run begins when the whole run has ended. Records without a
key have no order.

The order knows all unfinished records below `known_until`; whatever is delivered lies below. A batch whose
keys are unknown is delivered alone: after all records before it, and before all records behind it. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.protocol.record_keys import NO_KEY, KeyHashes


class BatchKeys(NamedTuple):
    """A producer batch that was read, with the keys of its records; both offsets are inclusive."""

    base_offset: int
    last_offset: int
    keys: KeyHashes | None
    """None if they are unknown. A batch without data for a client has none."""


class _Key:
    """The unfinished records of one key, ascending, and the number of them that a member holds."""

    __slots__ = ("hashed", "held_count", "offsets")

    def __init__(self, hashed: int, offset: int) -> None:
        self.hashed = hashed
        self.offsets = [offset]
        self.held_count = 0


class KeyOrder:
    """The unfinished records of the in-flight window by key.

    `alone` is the range of the batch that is delivered alone at the moment; its records are not counted
    among the others.
    """

    __slots__ = ("_heads", "_key_of", "_keys", "alone", "has_news", "known_until", "run_max")

    def __init__(self, known_until: int, run_max: int) -> None:
        self.known_until = known_until
        self.run_max = run_max
        self.alone: tuple[int, int] | None = None
        self.has_news = False
        """Whether keys have become free. The owner sets it back."""
        self._keys: dict[int, _Key] = {}
        self._key_of: dict[int, _Key] = {}
        """The key of each unfinished record, by its offset."""
        self._heads: list[int] = []
        """The first records of the free keys, ascending."""

    @property
    def is_empty(self) -> bool:
        """Whether no unfinished record is known, except those of a batch that is delivered alone."""
        return not self._key_of

    def add(self, offsets: Iterable[int], hashes: Iterable[int]) -> None:
        """Add available records, in ascending order, behind all that were added before."""
        keys, key_of, heads = self._keys, self._key_of, self._heads
        for offset, hashed in zip(offsets, hashes, strict=True):
            key = keys.get(hashed)
            if key is not None:
                key.offsets.append(offset)
            else:
                key = _Key(hashed, offset)
                heads.append(offset)
                if hashed != NO_KEY:
                    keys[hashed] = key
            key_of[offset] = key

    def next_records(self, count: int, spans: Sequence[tuple[int, int]]) -> list[int]:
        """The lowest records that may be delivered together, ascending, at most `count`.

        They lie within the spans, which ascend, and both of whose ends are inclusive. A caller may leave out
        some of the last ones.
        """
        heads = _within(self._heads, spans, count)
        if self.run_max == 1:
            return heads
        records: list[int] = []
        for head in heads:
            run = self._key_of[head].offsets[: self.run_max]
            inside = _within(run, spans, self.run_max)
            # From the first record outside of the spans on, none is at its place.
            records += [offset for offset, place in zip(inside, run, strict=False) if offset == place]
        return sorted(records)[:count]

    def take(self, first_offset: int, last_offset: int) -> None:
        """A member holds the records of this range, which were among the next ones."""
        heads, key_of = self._heads, self._key_of
        del heads[bisect_left(heads, first_offset) : bisect_right(heads, last_offset)]
        for offset in range(first_offset, last_offset + 1):
            key = key_of.get(offset)
            if key is not None:
                key.held_count += 1

    def release(self, first_offset: int, last_offset: int) -> None:
        """Held records of this range have become available."""
        key_of = self._key_of
        free: list[int] = []
        for offset in range(first_offset, last_offset + 1):
            key = key_of.get(offset)
            if key is not None:
                key.held_count -= 1
                if not key.held_count:
                    free.append(key.offsets[0])
        self._add_heads(free)

    def finish(self, first_offset: int, last_offset: int, *, was_held: bool) -> None:
        """Records of this range have become final, or are gone from the log."""
        key_of = self._key_of
        free: list[int] = []
        for offset in range(first_offset, last_offset + 1):
            key = key_of.pop(offset, None)
            if key is None:
                continue
            was_head = not key.held_count and key.offsets[0] == offset
            key.offsets.remove(offset)
            if was_head:
                del self._heads[bisect_left(self._heads, offset)]
            key.held_count -= was_held
            if not key.offsets:
                self._keys.pop(key.hashed, None)
            elif was_head:
                self._add_heads(key.offsets[:1])
            elif was_held and not key.held_count:
                free.append(key.offsets[0])
        self._add_heads(free)
        if self.alone is not None:
            self.has_news = True

    def records_behind(self, offset: int) -> Sequence[int]:
        """The records behind this one that may belong to its run; none if its run has only one record."""
        key = self._key_of.get(offset)
        if key is None or key.held_count < 2:
            return ()
        index = key.offsets.index(offset)
        return key.offsets[index + 1 : index + self.run_max]

    def _add_heads(self, free: list[int]) -> None:
        if not free:
            return
        self.has_news = True
        if len(free) == 1:
            insort(self._heads, free[0])
        else:
            self._heads += free
            self._heads.sort()


def _within(offsets: Sequence[int], spans: Sequence[tuple[int, int]], count: int) -> list[int]:
    """The first `count` of the ascending offsets that lie in the spans."""
    found: list[int] = []
    for first_offset, last_offset in spans:
        start = bisect_left(offsets, first_offset)
        end = bisect_right(offsets, last_offset, start)
        found += offsets[start : min(end, start + count - len(found))]
    return found
