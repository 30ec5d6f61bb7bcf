"""The order of a share-partition's records by their keys (`share.order=key`), by their priorities
(`share.priority.header`), or by both: the records that may be delivered now.

Records with equal hashes of their keys count as records of one key. A key is *free* while no member holds a
record of it. Then its first unfinished record can be delivered, and the next ones together with it, to the
same member; `run_max` bounds this *run*. The next run begins when the whole run has ended. Records without a
key have no order, and without `share.order=key` no record has a key here. A record that waits until it is due
keeps its key from being free, as a held record does.

With priorities, the most urgent records come first, see `priorities`. A key has the highest priority of its
unfinished records, so an urgent record does not wait behind less urgent ones of its key longer than it must.

The order knows all unfinished records below `known_until`, and delivers no others. A batch whose
keys are unknown is delivered alone: after all records before it, and before all records behind it. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat, takewhile
from operator import itemgetter
from typing import Final, NamedTuple

from barnabas.protocol.delivery_state import RecordState, StateRange
from barnabas.protocol.record_keys import NO_KEY, KeyHashes
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.priorities import Priorities

_MANY_MIN: Final = 16
"""From this number of records on, `_finish_many_first` is faster."""

_NONE: Final = -(1 << 63)
"""Neither a key nor an offset."""


class BatchKeys(NamedTuple):
    """A producer batch that was read, with the keys of its records; both offsets are inclusive."""

    base_offset: int
    last_offset: int
    keys: KeyHashes | None
    """None if they are unknown. A batch without data for a client has none."""
    priorities: bytes = b""
    """A byte for the priority of each record that has a key or NO_KEY here; empty if all are 0."""

    def between(self, first_offset: int, last_offset: int) -> BatchKeys:
        """The part of the batch in this range, which it overlaps; all of it if its keys are unknown."""
        first_offset, last_offset = max(first_offset, self.base_offset), min(last_offset, self.last_offset)
        if self.keys is None or (first_offset, last_offset) == self[:2]:
            return self
        deltas, hashes = self.keys
        skipped = first_offset - self.base_offset
        start = bisect_left(deltas, skipped)
        end = bisect_right(deltas, last_offset - self.base_offset, start)
        keys = KeyHashes([delta - skipped for delta in deltas[start:end]], hashes[start:end])
        return BatchKeys(first_offset, last_offset, keys, self.priorities[start:end])


class KeyOrder:
    """The unfinished records of the in-flight window by key.

    A record without a key counts as the only one of its own key. `alone` is the range of the batch that is
    delivered alone at the moment; its records are not counted among the others.

    The records of a key are a chain of offsets in dicts of numbers, because an object for each key would keep
    the garbage collector busy.
    """

    __slots__ = (
        "_first_of",
        "_heads",
        "_held",
        "_key_of",
        "_last_of",
        "_next_of",
        "_waiting",
        "alone",
        "has_news",
        "key_run_max",
        "known_until",
        "priorities",
        "run_max",
        "waits_until_empty",
    )

    def __init__(self, known_until: int, key_run_max: int, priorities: Priorities | None = None) -> None:
        """`key_run_max` is that of `ShareLimits`; if it is 0, there is no order of keys."""
        self.known_until = known_until
        self.key_run_max = key_run_max
        self.run_max = max(key_run_max, 1)
        self.priorities = priorities
        self.alone: tuple[int, int] | None = None
        self.has_news = False
        """Whether keys have become free. The owner sets it back."""
        self.waits_until_empty = False
        """Whether the batch at `known_until` is delivered alone, and waits for the records before it."""
        self._key_of: dict[int, int] = {}
        """The key of each unfinished record, by its offset."""
        self._first_of: dict[int, int] = {}
        """The first unfinished record of each key."""
        self._next_of: dict[int, int] = {}
        """The next record of the same key, by offset."""
        self._last_of: dict[int, int] = {}
        """The last record of each key that has several."""
        self._held: set[int] = set()
        """The held records, those that wait, and those whose end is not recorded."""
        self._waiting: set[int] = set()
        """The records that wait until they are due. A change of `share.order`, or a restart, may leave
        available records of the same key before them.
        """
        self._heads: list[int] = []
        """The first records of the free keys, ascending."""

    @classmethod
    def of(cls, known_until: int, limits: ShareLimits) -> KeyOrder:
        """A new order by a group's limits."""
        name = limits.priority.header_name
        priorities = Priorities(name, limits.priority.overtaken_max) if name else None
        return cls(known_until, limits.key_run_max, priorities)

    def follows(self, limits: ShareLimits) -> bool:
        """Whether this is the order of the group's limits."""
        header_name = "" if self.priorities is None else self.priorities.header_name
        return self.key_run_max == limits.key_run_max and header_name == limits.priority.header_name

    @property
    def is_empty(self) -> bool:
        """Whether no unfinished record is known, except those of a batch that is delivered alone."""
        return not self._key_of

    @property
    def free_count(self) -> int:
        """The number of records that can be delivered now, each the first one of its key."""
        return len(self._heads)

    def add(self, offsets: Sequence[int], hashes: Sequence[int], priorities: bytes = b"") -> None:
        """Add available records, in ascending order, behind all that were added before. `priorities` has a
        byte for each, or is empty.
        """
        if priorities and self.priorities is not None:
            self.priorities.add(offsets, priorities)
        if NO_KEY in hashes:
            hashes = [~offset if key == NO_KEY else key for offset, key in zip(offsets, hashes, strict=True)]
        self._key_of.update(zip(offsets, hashes, strict=True))
        first_offsets = list(map(self._first_of.setdefault, hashes, offsets))
        new = [offset for offset, first in zip(offsets, first_offsets, strict=True) if offset == first]
        self._heads += new
        if len(new) == len(offsets):
            return
        for offset, key, first_offset in zip(offsets, hashes, first_offsets, strict=True):
            if offset != first_offset:
                self._next_of[self._last_of.get(key, first_offset)] = offset
                self._last_of[key] = offset

    def next_records(self, count: int, spans: Sequence[tuple[int, int]]) -> list[int]:
        """The records that may be delivered together, at most `count`: the lowest ones, ascending, or with
        priorities the most urgent ones, these first.

        They lie within the spans, which ascend, and both of whose ends are inclusive. A caller may leave out
        some of the last ones.
        """
        if self.priorities is not None and (self.priorities.has_effect or self.run_max > 1):
            return self._most_urgent(self.priorities, count, spans)
        heads = _within(self._heads, spans, count)
        if self.run_max == 1:
            return heads
        records: list[int] = []
        for head in heads:
            records += self._run_within(head, spans)
        return sorted(records)[:count]

    def first_of_keys(self, offsets: Sequence[int]) -> list[int]:
        """Those of the unfinished records that are the first ones of their keys."""
        return [offset for offset in offsets if self._first_of[self._key_of[offset]] == offset]

    def take(self, first_offset: int, last_offset: int) -> None:
        """A member holds the records of this range: some of the next ones, or of a batch that goes alone."""
        if self.alone is not None:
            return
        heads = self._heads
        del heads[bisect_left(heads, first_offset) : bisect_right(heads, last_offset)]
        self._held.update(range(first_offset, last_offset + 1))

    def release(self, first_offset: int, last_offset: int) -> None:
        """Held records of this range, or records that have waited, can be delivered."""
        offsets = range(first_offset, last_offset + 1)
        keys = self._keys_of(offsets)
        if self._waiting:
            keys = [key for key in keys if not self._is_free(key)]
            self._waiting.difference_update(offsets)
        self._held.difference_update(offsets)
        self._add_heads([self._first_of[key] for key in keys if self._is_free(key)])

    def hold_back(self, first_offset: int, last_offset: int) -> None:
        """Available records of this range wait until they are due: `release` ends that."""
        self._waiting.update(self._hold(first_offset, last_offset))

    def keep(self, first_offset: int, last_offset: int) -> None:
        """Records of this range will not be delivered again. That is not recorded yet: then `finish`."""
        self._waiting.difference_update(self._hold(first_offset, last_offset))

    def finish(self, first_offset: int, last_offset: int, *, was_held: bool) -> None:
        """Records of this range have become final, or are gone from the log."""
        if self.priorities is not None:
            self.priorities.finish(first_offset, last_offset)
        offsets = range(first_offset, last_offset + 1)
        if not was_held or self.run_max > 1:
            self._finish_any(offsets)
        elif len(offsets) > _MANY_MIN:
            self._finish_many_first(offsets)
        else:
            self._finish_first(offsets)
        if self.alone is not None or (self.waits_until_empty and self.is_empty):
            self.has_news = True

    def recorded(self, changes: Iterable[StateRange]) -> None:
        """Changes that were in force before are recorded now."""
        for change in changes:
            if change.state is not RecordState.AVAILABLE:
                self.finish(change.base_offset, change.last_offset, was_held=False)

    def take_news(self) -> bool:
        """Whether keys have become free since the last call."""
        had_news, self.has_news = self.has_news, False
        return had_news

    def note_delivered(self, ranges: Iterable[tuple[int, int]]) -> int:
        """In a group with priorities, members have taken these ranges; returns the number of records that
        have overtaken another one.
        """
        assert self.priorities is not None
        return self.priorities.note_delivered(ranges, self._heads[0] if self._heads else None)

    def records_behind(self, offset: int) -> list[int]:
        """The records behind this one that may belong to its run."""
        return list(islice(self._records_behind(offset), self.run_max - 1))

    def is_waiting(self, offset: int) -> bool | None:
        """Whether an available record cannot be delivered before others of its key; None if no such record is
        known.
        """
        key = self._key_of.get(offset)
        if key is None:
            return None
        if not self._is_free(key):
            return True
        first_offset = self._first_of[key]
        return offset != first_offset and offset not in self.records_behind(first_offset)

    def waiting_pieces(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, bool]]:
        """A range of available records by whether they wait for their key: (first, last, is waiting).

        An offset without a record belongs to the piece before it. Records whose keys are not known yet wait
        only if the first of them are in a batch that is delivered alone, after all records before it.
        """
        waits_for_all_before = self.waits_until_empty and not self.is_empty
        piece_first, is_waiting = first_offset, False
        for offset in range(first_offset, last_offset + 1):
            waits = self.is_waiting(offset) if offset < self.known_until else waits_for_all_before
            if waits is None or waits == is_waiting:
                continue
            if piece_first < offset:
                yield piece_first, offset - 1, is_waiting
            piece_first, is_waiting = offset, waits
        yield piece_first, last_offset, is_waiting

    def priority_pieces(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, int | None]]:
        """A range of unfinished records in pieces of one priority: (first, last, priority). It is None if it
        is not known: nothing was read there yet, the batch is delivered alone, or there are no priorities.
        """
        end_offset = first_offset if self.alone is not None else min(self.known_until, last_offset + 1)
        if self.priorities is not None and first_offset < end_offset:
            urgent = self.priorities.between(first_offset, end_offset - 1)
            piece_first, present = first_offset, None
            for offset in range(first_offset, end_offset):
                # An offset without a record belongs to the piece before it.
                priority = urgent.get(offset, 0) if offset in self._key_of else present
                if present is not None and priority != present:
                    yield piece_first, offset - 1, present
                    piece_first = offset
                present = priority
            yield piece_first, end_offset - 1, present
            first_offset = end_offset
        if first_offset <= last_offset:
            yield first_offset, last_offset, None

    def available_before(self, offset: int) -> list[int]:
        """The available records before a held one of its key."""
        key = self._key_of.get(offset)
        if key is None:
            return []
        first_offset = self._first_of[key]
        before = takewhile(offset.__gt__, chain((first_offset,), self._records_behind(first_offset)))
        return [earlier for earlier in before if earlier not in self._held or earlier in self._waiting]

    def _most_urgent(self, priorities: Priorities, count: int, spans: Sequence[tuple[int, int]]) -> list[int]:
        heads = self._heads
        is_all_inside = bool(heads) and spans[0][0] <= heads[0] and heads[-1] <= spans[0][1]
        records: list[int] = []
        for head in self._heads_by_urgency(priorities):
            if len(records) >= count:
                break
            if self.run_max > 1:
                records += self._run_within(head, spans)
            elif is_all_inside or _is_within(head, spans):
                records.append(head)
        return records[:count]

    def _heads_by_urgency(self, priorities: Priorities) -> Iterator[int]:
        """The first records of the free keys: overdue ones, those of urgent keys, then all others."""
        seen: set[int] = set()
        for head in chain(priorities.overdue(self._heads), self._urgent_heads(priorities)):
            if head not in seen:
                seen.add(head)
                yield head
        yield from (head for head in self._heads if head not in seen)

    def _urgent_heads(self, priorities: Priorities) -> Iterator[int]:
        """The first records of the free keys with urgent records; some several times."""
        if not self.key_run_max:
            held = self._held
            return (offset for offset in priorities.most_urgent_first() if offset not in held)
        keys = map(self._key_of.__getitem__, priorities.most_urgent_first())
        return (self._first_of[key] for key in keys if self._is_free(key))

    def _run_within(self, head: int, spans: Sequence[tuple[int, int]]) -> list[int]:
        """The first records of the run that begins with `head`, as far as they lie in the spans."""
        run = [head, *islice(self._records_behind(head), self.run_max - 1)]
        inside = _within(run, spans, self.run_max)
        # From the first record outside of the spans on, none is at its place.
        return [offset for offset, place in zip(inside, run, strict=False) if offset == place]

    def _finish_first(self, offsets: range) -> None:
        """Held records have become final, each the first one of its key."""
        free: list[int] = []
        self._held.difference_update(offsets)
        for offset in offsets:
            key = self._key_of.pop(offset, None)
            if key is None:
                continue
            following = self._next_of.pop(offset, None)
            if following is None:
                del self._first_of[key]
                self._last_of.pop(key, None)
            else:
                self._first_of[key] = following
                if following not in self._held:
                    free.append(following)
        self._add_heads(free)

    def _finish_many_first(self, offsets: range) -> None:
        """The same by functions in C: the loop above would cost more than all other work on a fetch."""
        self._held.difference_update(offsets)
        keys = [key for key in map(self._key_of.pop, offsets, repeat(_NONE)) if key != _NONE]
        if not self._next_of.keys().isdisjoint(offsets):
            following = map(self._next_of.pop, map(self._first_of.__getitem__, keys), repeat(_NONE))
            firsts = list(zip(keys, following, strict=True))
            free = [(key, first) for key, first in firsts if first != _NONE]
            self._add_heads([first for _, first in free if first not in self._held])
            keys = [key for key, first in firsts if first == _NONE]
            self._first_of.update(free)
        _consume(map(self._first_of.pop, keys))
        if not self._last_of.keys().isdisjoint(keys):
            _consume(map(self._last_of.pop, keys, repeat(_NONE)))

    def _finish_any(self, offsets: range) -> None:
        for offset in offsets:
            key = self._key_of.get(offset)
            was_free = key is not None and self._is_free(key)
            self._held.discard(offset)
            self._waiting.discard(offset)
            if key is None:
                continue
            was_head = was_free and self._first_of[key] == offset
            if was_head:
                del self._heads[bisect_left(self._heads, offset)]
            del self._key_of[offset]
            first_left = self._remove(key, offset)
            if first_left is not None and (was_head or not was_free) and self._is_free(key):
                self._add_heads([first_left])

    def _hold(self, first_offset: int, last_offset: int) -> list[int]:
        """Takes the known records of this range out of their turn, and returns them."""
        offsets = [offset for offset in range(first_offset, last_offset + 1) if offset in self._key_of]
        self._held.update(offsets)
        heads = self._heads
        for key in self._keys_of(offsets):
            index = bisect_left(heads, self._first_of[key])
            is_head = index < len(heads) and heads[index] == self._first_of[key]
            if is_head and not self._is_free(key):
                del heads[index]
        return offsets

    def _keys_of(self, offsets: Iterable[int]) -> list[int]:
        """The keys of these records, each once."""
        return list(dict.fromkeys(self._key_of[offset] for offset in offsets if offset in self._key_of))

    def _records_behind(self, offset: int) -> Iterator[int]:
        following = self._next_of.get(offset)
        while following is not None:
            yield following
            following = self._next_of.get(following)

    def _is_free(self, key: int) -> bool:
        """Whether no record of the key is held. Held ones are among the first `run_max` of a key, and so are
        the waiting ones that matter for its next run.
        """
        first_offset = self._first_of[key]
        if self.run_max == 1:
            return first_offset not in self._held
        run = chain((first_offset,), islice(self._records_behind(first_offset), self.run_max - 1))
        return self._held.isdisjoint(run)

    def _remove(self, key: int, offset: int) -> int | None:
        """Take a record out of the chain of its key; returns the first one that is left."""
        following = self._next_of.pop(offset, None)
        first_offset = self._first_of[key]
        if first_offset == offset:
            if following is None:
                del self._first_of[key]
                self._last_of.pop(key, None)
            else:
                self._first_of[key] = following
            return following
        before = first_offset
        while self._next_of[before] != offset:
            before = self._next_of[before]
        if following is None:
            del self._next_of[before]
            self._last_of[key] = before
        else:
            self._next_of[before] = following
        return first_offset

    def _add_heads(self, free: list[int]) -> None:
        if not free:
            return
        self.has_news = True
        if self.priorities is not None:
            self.priorities.begin_to_count(free)
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


def _is_within(offset: int, spans: Sequence[tuple[int, int]]) -> bool:
    index = bisect_right(spans, offset, key=_first_of_span) - 1
    return index >= 0 and offset <= spans[index][1]


_first_of_span = itemgetter(0)

_consume = deque[object](maxlen=0).extend
"""Calls an iterator to its end."""
