"""Random commits, transactions, resets, failures, restarts and compactions against a set of offsets."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.coordinator.replay.interfaces import NO_PRODUCER_ID, Stored, StoredMarker, StoredRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from tests.coordinator.classic.classic_bench import GROUP, TOPIC, Bench
from tests.coordinator.offsets.individual_commits import (
    State,
    commit_ranges,
    commit_ranges_in_transaction,
    end_transaction,
    state,
)
from tests.coordinator.simulated_log import error_of

offsets = st.integers(0, 30)
range_lists = st.lists(
    st.tuples(offsets, st.integers(0, 4)).map(lambda one: (one[0], one[0] + one[1])), max_size=4
)
producer_ids = st.sampled_from([11, 12])


def compacted(stored: Iterable[Stored]) -> list[Stored]:
    """The log as the cleaner leaves it: no aborted record, and the last record of each key."""
    kept: list[Stored] = []
    open_records: dict[int, list[StoredRecord]] = {}
    latest: dict[bytes | None, int] = {}
    aborted: set[int] = set()
    for one in stored:
        kept.append(one)
        if isinstance(one, StoredMarker):
            for record in open_records.pop(one.producer_id, []):
                if one.commit:
                    latest[record.key] = max(latest.get(record.key, -1), record.offset)
                else:
                    aborted.add(record.offset)
        elif one.producer_id == NO_PRODUCER_ID:
            latest[one.key] = max(latest.get(one.key, -1), one.offset)
        else:
            open_records.setdefault(one.producer_id, []).append(one)
    pending = {record.offset for records in open_records.values() for record in records}
    return [
        one
        for one in kept
        if isinstance(one, StoredMarker)
        or one.offset in pending
        or (one.offset not in aborted and latest[one.key] == one.offset)
    ]


def offsets_of(ranges: Iterable[tuple[int, int]]) -> set[int]:
    return {offset for first, last in ranges for offset in range(first, last + 1)}


class IndividualCommits(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.stable: int | None = None
        self.committed: set[int] = set()
        self.pending: dict[int, set[int]] = {}

    @rule(ranges=range_lists, start=st.integers(-1, 20))
    def commit(self, ranges: list[tuple[int, int]], start: int) -> None:
        codes = commit_ranges(self.bench, *ranges, start=start).result()
        if self.stable is None and start < 0:
            assert codes == [ErrorCode.invalid_request]
            return
        assert codes == [ErrorCode.none]
        self.stable = start - 1 if self.stable is None else self.stable
        self.committed |= offsets_of(ranges)

    @rule(offset=offsets)
    def commit_ordinarily(self, offset: int) -> None:
        self.bench.start_commit(offset).result()
        self.pending.clear()
        self.stable = offset - 1
        self.committed = set()

    @precondition(lambda self: self.stable is not None)
    @rule(ranges=range_lists, producer_id=producer_ids)
    def commit_in_transaction(self, ranges: list[tuple[int, int]], producer_id: int) -> None:
        producer = ProducerIdentity(producer_id, 0)
        codes = commit_ranges_in_transaction(self.bench, *ranges, producer=producer).result()
        assert codes == [ErrorCode.none]
        self.pending.setdefault(producer_id, set()).update(offsets_of(ranges))

    @rule(producer_id=producer_ids, commit=st.booleans(), fails_to_merge=st.booleans())
    def end(self, producer_id: int, commit: bool, fails_to_merge: bool) -> None:
        self.bench.log.fails_after = 1 if fails_to_merge else None
        end_transaction(self.bench, commit=commit, producer=ProducerIdentity(producer_id, 0))
        self.bench.log.fails_after = None
        ended = self.pending.pop(producer_id, set())
        if commit:
            self.committed |= ended

    @rule(ranges=range_lists)
    def fail_to_commit(self, ranges: list[tuple[int, int]]) -> None:
        self.bench.log.failing = True
        reply = commit_ranges(self.bench, *ranges, start=3)
        self.bench.log.failing = False
        assert error_of(reply) in {ErrorCode.none, ErrorCode.coordinator_not_available}

    @precondition(lambda self: self.stable is not None)
    @rule()
    def delete(self) -> None:
        self.bench.offsets.delete(GROUP, [(TOPIC, 0)]).result()
        self.pending.clear()
        self.stable, self.committed = None, set()

    @rule(compacts=st.booleans())
    def restart(self, compacts: bool) -> None:
        self.bench.restart(compacted if compacts else list)

    @invariant()
    def is_a_set_of_offsets(self) -> None:
        assert state(self.bench) == self._expected()

    def _expected(self) -> State:
        if self.stable is None:
            return None, []
        stable = self.stable
        while stable + 1 in self.committed:
            stable += 1
        ranges: list[tuple[int, int]] = []
        for offset in sorted(one for one in self.committed if one > stable):
            if ranges and ranges[-1][1] + 1 == offset:
                ranges[-1] = (ranges[-1][0], offset)
            else:
                ranges.append((offset, offset))
        return stable, ranges


TestIndividualCommits = IndividualCommits.TestCase
TestIndividualCommits.settings = settings(max_examples=60, stateful_step_count=25)
