"""The share coordinator: which records it writes, which writers it fences, and which records it deletes.

`tests/conformance/test_state_requests.py` compares its answers with Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import pytest

from barnabas.coordinator.replay.interfaces import Stored, StoredRecord
from barnabas.coordinator.share_state.loading import RecordsInForce
from barnabas.coordinator.share_state.share_coordinator import coordinator_key, is_coordinator_key
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.share_partition_state import StateWrite
from barnabas.storage.format.state_batches import StateBatch
from tests.coordinator.share_state.share_state_bench import KEY, OTHER, Bench
from tests.coordinator.simulated_log import error_of, take_all


def acknowledged(*ranges: tuple[int, int]) -> list[StateBatch]:
    return [StateBatch(first, last, 1, 2) for first, last in ranges]


class TestRecords:
    def test_a_state_begins_with_a_snapshot_and_goes_on_with_updates(self) -> None:
        bench = Bench()
        bench.initialise()
        bench.write((0, 1))
        bench.write((4, 5))
        assert bench.kinds() == "Suu"
        assert bench.read().result().state_batches == acknowledged((0, 1), (4, 5))

    def test_after_a_number_of_updates_a_snapshot_is_written(self) -> None:
        bench = Bench(updates_per_snapshot=2)
        bench.initialise()
        for offset in range(0, 10, 2):
            bench.write((offset, offset))
        assert bench.kinds() == "SuuSuu"
        assert bench.read().result().snapshot_epoch == 1

    def test_without_updates_each_record_is_a_snapshot(self) -> None:
        bench = Bench(updates_per_snapshot=0)
        bench.initialise()
        bench.write((0, 0))
        assert bench.kinds() == "SS"

    def test_a_snapshot_holds_the_batches_above_the_start(self) -> None:
        bench = Bench(updates_per_snapshot=1)
        bench.initialise()
        bench.write((0, 3), (6, 7))
        bench.write((9, 9), start_offset=7, delivery_complete_count=2)
        state = bench.read().result()
        assert bench.kinds() == "SuS"
        assert (state.start_offset, state.delivery_complete_count) == (7, 2)
        assert state.state_batches == acknowledged((7, 7), (9, 9))

    def test_a_newer_leader_epoch_is_written_by_reading_once(self) -> None:
        bench = Bench()
        bench.initialise(3)
        bench.write((3, 3), start_offset=3, delivery_complete_count=1)
        for _ in range(2):
            assert bench.read(4).result().state_batches == acknowledged((3, 3))
        assert bench.kinds() == "Suu"
        assert bench.read().result().leader_epoch == 4
        assert error_of(bench.read(3)) is ErrorCode.fenced_leader_epoch

    def test_a_deletion_is_a_tombstone_and_a_second_one_nothing(self) -> None:
        bench = Bench()
        bench.initialise()
        bench.coordinator.delete(KEY)
        bench.coordinator.delete(KEY)
        assert bench.kinds() == "ST"
        assert error_of(bench.read()) is ErrorCode.invalid_request
        assert bench.coordinator.read_summary(KEY).result() is None

    def test_begun_anew_it_has_no_batches(self) -> None:
        bench = Bench()
        bench.initialise()
        bench.write((0, 4))
        bench.initialise(2, state_epoch=5)
        state = bench.read().result()
        assert (state.start_offset, state.state_epoch, list(state.state_batches)) == (2, 5, [])
        assert error_of(bench.write((2, 2))) is ErrorCode.fenced_state_epoch

    def test_written_whole_it_has_no_batches_but_these(self) -> None:
        bench = Bench()
        bench.initialise()
        bench.write((0, 0), (4, 9))
        bench.coordinator.write_whole(KEY, StateWrite(1, 0, 0, 2, acknowledged((3, 4))), now_ms=bench.now_ms)
        state = bench.read().result()
        assert (state.state_epoch, state.delivery_complete_count) == (1, 2)
        assert state.state_batches == acknowledged((3, 4))
        assert bench.kinds() == "SuS"
        fenced = bench.coordinator.write_whole(KEY, StateWrite(0, 0, 0, 0), now_ms=bench.now_ms)
        assert error_of(fenced) is ErrorCode.fenced_state_epoch

    def test_deleted_topics_take_their_states_with_them(self) -> None:
        bench = Bench()
        elsewhere = SharePartitionKey("group", UUID(int=8), 0)
        bench.topics.ids.add(elsewhere.topic_id)
        for key in (KEY, OTHER, elsewhere):
            bench.initialise(key=key)
        bench.coordinator.on_topics_deleted([KEY.topic_id])
        assert bench.kinds() == "SSSTT"
        assert list(bench.coordinator.states()) == [elsewhere]

    def test_background_records_are_written_in_bounded_batches(self) -> None:
        bench = Bench()
        for number in range(1001):
            bench.initialise(key=KEY._replace(group_id=f"group-{number}"))
        before = len(bench.log.batches)
        bench.coordinator.on_topics_deleted([KEY.topic_id])
        assert [len(batch.records) for batch in bench.log.batches[before:]] == [500, 500, 1]


class TestFailures:
    def test_a_write_that_fails_changes_nothing(self) -> None:
        bench = Bench()
        bench.initialise()
        bench.log.failing = True
        assert error_of(bench.write((0, 3))) is ErrorCode.coordinator_not_available
        bench.log.failing = False
        assert list(bench.read().result().state_batches) == []

    def test_operations_wait_for_the_append_before_them(self) -> None:
        bench = Bench()
        bench.initialise()
        bench.log.held = True
        written, read = bench.write((0, 3)), bench.read()
        assert not read.done
        bench.log.release()
        assert written.done
        assert read.result().state_batches == acknowledged((0, 3))

    def test_nothing_is_answered_before_the_log_was_read(self) -> None:
        bench = Bench(load=False)
        assert error_of(bench.read()) is ErrorCode.coordinator_load_in_progress

    def test_unloaded_it_knows_nothing_until_it_is_loaded_again(self) -> None:
        bench = Bench()
        bench.initialise()
        bench.log.held = True
        under_way = bench.write((0, 3))
        bench.coordinator.unload(0)
        assert error_of(under_way) is ErrorCode.coordinator_load_in_progress
        bench.log.release()
        bench.log.held = False
        assert not bench.coordinator.holds(KEY)
        take_all(bench.coordinator.load(0, bench.log.stored(0)))
        assert bench.read().result().state_batches == acknowledged((0, 3))


def offsets_in_force(stored: Iterable[Stored]) -> list[int]:
    in_force = RecordsInForce()
    for record in stored:
        in_force.add(record)
    return [offset for _, offset in in_force.decoded()]


class TestLoading:
    def test_nothing_is_known_of_a_partition_until_the_last_step(self) -> None:
        bench = Bench()
        bench.initialise()
        again = Bench(load=False)
        steps = again.coordinator.load(0, bench.log.stored(0))
        for _ in steps:
            assert not again.coordinator.holds(KEY)
            assert error_of(again.read()) is ErrorCode.coordinator_load_in_progress
        assert again.coordinator.holds(KEY)
        assert error_of(again.read()) is ErrorCode.none

    def test_a_state_comes_back_with_its_epochs_and_its_count_of_updates(self) -> None:
        bench = Bench(updates_per_snapshot=3)
        bench.initialise()
        bench.read(5)
        bench.write((0, 0), leader_epoch=5)
        again = Bench(bench.log, updates_per_snapshot=3)
        assert again.read().result() == bench.read().result()
        assert error_of(again.read(4)) is ErrorCode.fenced_leader_epoch
        for offset in (1, 2):
            again.write((offset, offset), leader_epoch=5)
        assert again.kinds() == "SuuuS"

    def test_records_before_a_snapshot_are_not_decoded(self) -> None:
        bench = Bench(updates_per_snapshot=1)
        bench.initialise()
        for offset in range(5):
            bench.write((offset, offset))
        stored = bench.log.stored_records(0)
        spoiled = [record._replace(value=b"spoiled") for record in stored[:-2]] + stored[-2:]
        assert offsets_in_force(spoiled) == [4, 5]

    def test_tombstones_are_in_force_and_records_of_others_are_passed_over(self) -> None:
        bench = Bench()
        bench.initialise()
        bench.write((0, 0))
        bench.coordinator.delete(KEY)
        foreign = [StoredRecord(90, None, b"x"), StoredRecord(91, b"\x00\x05key", b"x")]
        assert offsets_in_force([*bench.log.stored(0), *foreign]) == [2]

    def test_a_damaged_record_is_refused(self) -> None:
        bench = Bench()
        bench.initialise()
        (stored,) = bench.log.stored_records(0)
        with pytest.raises(RecordFormatError):
            take_all(Bench(load=False).coordinator.load(0, [stored._replace(value=b"\x00\x00spoiled")]))

    def test_an_update_whose_snapshot_is_gone_still_counts(self) -> None:
        bench = Bench()
        bench.initialise()
        bench.write((0, 3))
        again = Bench(load=False)
        take_all(again.coordinator.load(0, bench.log.stored(0)[1:]))
        assert again.read().result().state_batches == acknowledged((0, 3))


class TestPruning:
    """Kafka's cases of its offsets manager: records from the least offset of the newest snapshots on are
    needed.
    """

    def prune(self, bench: Bench) -> int:
        bench.coordinator.prune()
        return bench.log.pruned[-1][1] if bench.log.pruned else 0

    def test_removes_nothing_before_the_first_snapshot_and_nothing_below_the_only_one(self) -> None:
        bench = Bench()
        assert self.prune(bench) == 0
        bench.initialise()
        bench.write((0, 0))
        assert self.prune(bench) == 0

    def test_the_share_partition_that_was_written_whole_longest_ago_decides(self) -> None:
        bench = Bench(updates_per_snapshot=0)
        bench.initialise(key=OTHER)
        bench.initialise()
        for offset in range(3):
            bench.write((offset, offset))
        assert self.prune(bench) == 0
        bench.write((0, 0), key=OTHER)
        assert self.prune(bench) == 4

    def test_a_deleted_one_no_longer_holds_back(self) -> None:
        bench = Bench(updates_per_snapshot=0)
        bench.initialise(key=OTHER)
        bench.initialise()
        bench.write((0, 0))
        bench.coordinator.delete(OTHER)
        assert self.prune(bench) == 2
        bench.coordinator.delete(KEY)
        assert self.prune(bench) == 4, "the last tombstone stays"

    def test_the_same_offset_is_pruned_once(self) -> None:
        bench = Bench(updates_per_snapshot=0)
        bench.initialise()
        bench.write((0, 0))
        for _ in range(2):
            bench.coordinator.prune()
        assert bench.log.pruned == [(0, 1)]

    def test_the_records_that_remain_give_the_same_states(self) -> None:
        bench = Bench(updates_per_snapshot=2)
        for key in (KEY, OTHER):
            bench.initialise(key=key)
        for offset in range(20):
            bench.write((2 * offset, 2 * offset), key=(KEY, OTHER)[offset % 2])
        bench.coordinator.prune()
        ((_, pruned),) = bench.log.pruned
        assert pruned > 10
        left = Bench(load=False)
        take_all(left.coordinator.load(0, bench.log.stored(0)[pruned:]))
        assert left.coordinator.states() == bench.coordinator.states()


class TestColdStates:
    def test_are_written_whole_once_they_hold_back_others(self) -> None:
        bench = Bench()
        bench.initialise(key=OTHER)
        bench.advance(1000)
        bench.initialise()
        bench.coordinator.snapshot_cold()
        assert bench.kinds() == "SSS"
        state = bench.coordinator.states()[OTHER]
        assert (state.snapshot_epoch, state.write_timestamp_ms) == (1, bench.now_ms)
        assert state.create_timestamp_ms == bench.now_ms - 1000
        bench.coordinator.prune()
        assert bench.log.pruned == [(0, 1)]

    @pytest.mark.parametrize("shift_ms", [-60_000, 60_000])
    def test_are_written_whole_at_the_same_time_if_the_wall_clock_is_set(self, shift_ms: int) -> None:
        bench = Bench()
        bench.initialise(key=OTHER)
        bench.now_ms += shift_ms
        bench.advance(999)
        bench.initialise()
        bench.coordinator.snapshot_cold()
        assert bench.kinds() == "SS"
        bench.advance(1)
        bench.coordinator.snapshot_cold()
        assert bench.kinds() == "SSS"
        assert bench.coordinator.states()[OTHER].snapshot_epoch == 1

    def test_are_as_old_after_a_restart_as_the_wall_clock_says(self) -> None:
        bench = Bench()
        bench.initialise(key=OTHER)
        bench.initialise()
        again = bench.restarted(later_ms=1000)
        again.coordinator.snapshot_cold()
        assert again.kinds() == "SSSS"

    def test_stay_where_nothing_else_happens(self) -> None:
        bench = Bench()
        bench.initialise()
        for _ in range(3):
            bench.advance(1000)
            bench.coordinator.snapshot_cold()
        assert bench.kinds() == "SS"


class TestKeys:
    def test_are_kafkas(self) -> None:
        key = SharePartitionKey("a:b", UUID(bytes=bytes(range(16))), 17)
        assert coordinator_key(key) == "a:b:AAECAwQFBgcICQoLDA0ODw:17"
        assert is_coordinator_key(coordinator_key(key))

    @pytest.mark.parametrize("text", ["", "g", "g:0", " :AAECAwQFBgcICQoLDA0ODw:0", "g:topic:0", "g:AA:x"])
    def test_other_texts_are_none(self, text: str) -> None:
        assert not is_coordinator_key(text)
