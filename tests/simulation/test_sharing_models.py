"""The beliefs of the models of sharing groups, and the answers that they call a broken promise."""

from math import inf
from random import Random
from uuid import UUID

import pytest

from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange, even_ranges
from tests.simulation.membership_model import ReconciliationModel
from tests.simulation.model import Violation
from tests.simulation.ranges_model import RangesModel
from tests.simulation.sharer_member import MemberIds
from tests.simulation.sharing_model import Result, SharingModel
from tests.simulation.transaction_model import Transaction

PARTITION = TopicIdPartition(UUID(int=1), 0)
LOW, HIGH = even_ranges(2)


def transaction(name: str = "id/0") -> Transaction:
    return Transaction(name, begun_wall_ms=100, timeout_ms=50, clock_changes=0)


def test_a_process_keeps_its_member_id_sometimes_but_never_for_a_new_group() -> None:
    ids = MemberIds(Random(1))
    in_first = [ids.next(1) for _ in range(20)]
    in_second = [ids.next(2) for _ in range(20)]
    assert 1 < len(set(in_first)) < 20
    assert not set(in_first) & set(in_second)


class TestRanges:
    @pytest.fixture
    def ranges(self) -> RangesModel:
        """The offsets 0 and 1, confirmed at 2."""
        model = RangesModel("group/t-0")
        model.confirm(model.send([0, 1], 1), 2)
        return model

    def test_a_confirmed_commit_is_not_forgotten(self, ranges: RangesModel) -> None:
        with pytest.raises(Violation, match="forgotten"):
            ranges.saw({0}, ranges.look(3), 4)

    def test_no_offset_is_committed_by_itself(self, ranges: RangesModel) -> None:
        with pytest.raises(Violation, match="no commit of it is in force"):
            ranges.saw({0, 1, 2}, ranges.look(3), 4)

    def test_a_commit_without_an_answer_is_in_force_as_a_whole_or_not_at_all(
        self, ranges: RangesModel
    ) -> None:
        ranges.send([4, 6], 3)
        ranges.saw({0, 1}, ranges.look(4), 5)
        with pytest.raises(Violation, match="in part"):
            ranges.saw({0, 1, 4}, ranges.look(6), 7)

    def test_a_commit_that_was_seen_stays(self, ranges: RangesModel) -> None:
        ranges.send([4, 6], 3)
        ranges.saw({0, 1, 4, 6}, ranges.look(4), 5)
        with pytest.raises(Violation, match="forgotten"):
            ranges.saw({0, 1}, ranges.look(6), 7)

    def test_a_commit_that_a_process_took_with_it_takes_no_effect_later(self, ranges: RangesModel) -> None:
        ranges.send([4], 3)
        ranges.end_process(4)
        ranges.saw({0, 1}, ranges.look(5), 6)
        with pytest.raises(Violation, match="no commit of it is in force"):
            ranges.saw({0, 1, 4}, ranges.look(7), 8)

    def test_a_commit_that_waits_for_a_transaction_is_not_in_force(self, ranges: RangesModel) -> None:
        commit = ranges.send([4], inf)
        with pytest.raises(Violation, match="no commit of it is in force"):
            ranges.saw({0, 1, 4}, ranges.look(3), 4)
        commit.sent_ms = 5
        ranges.saw({0, 1, 4}, ranges.look(6), 7)

    def test_a_reset_takes_all_earlier_commits_out_of_force(self, ranges: RangesModel) -> None:
        pending = ranges.send([4], inf)
        ranges.begin_reset()
        ranges.end_reset(1)
        ranges.confirm(pending, 3)
        ranges.saw({0}, ranges.look(4), 5)
        with pytest.raises(Violation, match="no commit of it is in force"):
            ranges.saw({0, 4}, ranges.look(6), 7)

    def test_nothing_is_known_while_a_reset_is_under_way(self, ranges: RangesModel) -> None:
        look = ranges.look(3)
        ranges.begin_reset()
        ranges.saw(set(), ranges.look(4), 5)
        ranges.end_reset(None)
        ranges.saw(set(), look, 6)
        with pytest.raises(Violation, match="forgotten"):
            ranges.saw(set(), ranges.look(7), 8)

    def test_after_a_reset_without_an_answer_any_commit_may_be_in_force(self, ranges: RangesModel) -> None:
        ranges.begin_reset()
        ranges.lose_reset(4)
        for found in (set[int](), {0, 1}, {0, 1, 2, 3}):
            ranges.saw(found, ranges.look(4), 5)

    def test_a_commit_in_order_waits_for_the_offsets_before_it(self, ranges: RangesModel) -> None:
        commit = ranges.send([3, 5], inf)
        with pytest.raises(Violation, match="did not wait for 2"):
            ranges.reached(commit)
        ranges.send([2], inf)
        ranges.reached(commit)


class TestShares:
    @pytest.fixture
    def group(self) -> ReconciliationModel:
        """Member a has the lower half of a partition from 2 to 10 at least."""
        model = ReconciliationModel("group")
        model.given("a", {PARTITION: LOW}, sent_ms=1, now_ms=2, until_ms=10)
        return model

    def test_members_share_a_partition_by_different_hashes(self, group: ReconciliationModel) -> None:
        group.given("b", {PARTITION: HIGH}, sent_ms=3, now_ms=4, until_ms=20)
        with pytest.raises(Violation, match="holds it"):
            group.given("c", {PARTITION: ALL_HASHES}, sent_ms=5, now_ms=6, until_ms=20)

    def test_a_commit_of_the_hashes_of_another_member_is_not_accepted(
        self, group: ReconciliationModel
    ) -> None:
        group.committed("b", PARTITION, HIGH, sent_ms=3, now_ms=4)
        with pytest.raises(Violation, match="commits for"):
            group.committed("b", PARTITION, LOW, sent_ms=3, now_ms=4)
        group.committed("b", PARTITION, LOW, sent_ms=3, now_ms=10)


class TestSharing:
    @pytest.fixture
    def group(self) -> SharingModel:
        """Member a has committed hashes of a partition, at 2, in a transaction from 100 to 150."""
        model = SharingModel("sharing")
        model.members.given("a", {PARTITION: LOW}, sent_ms=0, now_ms=1, until_ms=10)
        (commit,) = model.opens("a", {PARTITION: LOW}, {PARTITION: [5, 7]}, transaction())
        commit.told_ms = 2
        return model

    def test_a_share_waits_for_the_transaction_of_its_last_owner(self, group: SharingModel) -> None:
        def gets(member: str, hashes: HashRange = LOW, *, wall_ms: int = 150) -> None:
            group.check_handover(
                member, {PARTITION: hashes}, sent_ms=3, now_ms=4, wall_ms=wall_ms, clock_changes=0
            )

        gets("b", HIGH)
        gets("b", wall_ms=151)
        with pytest.raises(Violation, match="has ended"):
            gets("b")

    def test_a_reset_ends_the_wait_for_a_share(self, group: SharingModel) -> None:
        group.may_reset(PARTITION)
        group.check_handover("b", {PARTITION: LOW}, sent_ms=3, now_ms=4, wall_ms=150, clock_changes=0)

    def test_a_share_does_not_wait_for_offsets_that_another_member_has_committed(
        self, group: SharingModel
    ) -> None:
        ranges = group.ranges(PARTITION)
        ranges.confirm(ranges.send([5], sent_ms=2), now_ms=3)
        with pytest.raises(Violation, match="has ended"):
            group.check_handover("b", {PARTITION: LOW}, sent_ms=3, now_ms=4, wall_ms=150, clock_changes=0)
        ranges.confirm(ranges.send([6, 7], sent_ms=2), now_ms=3)
        group.check_handover("b", {PARTITION: LOW}, sent_ms=3, now_ms=4, wall_ms=150, clock_changes=0)

    def test_offsets_are_unstable_only_for_a_former_owner(self, group: SharingModel) -> None:
        with pytest.raises(Violation, match="is unstable"):
            group.check_unstable("b", PARTITION, sent_ms=3, now_ms=4)
        group.check_unstable("a", PARTITION, sent_ms=3, now_ms=4)
        group.members.left("a")
        group.check_unstable("b", PARTITION, sent_ms=3, now_ms=4)

    def test_a_member_waits_for_its_own_transaction_before_it_reads_offsets(
        self, group: SharingModel
    ) -> None:
        group.check_stable("b", PARTITION, sent_ms=3, wall_ms=150, clock_changes=0)
        with pytest.raises(Violation, match="its own transaction"):
            group.check_stable("a", PARTITION, sent_ms=3, wall_ms=150, clock_changes=0)


class TestResults:
    @pytest.fixture
    def group(self) -> SharingModel:
        """The results a0 and a1 of the records 0 and 1 of one key, and b0, a repetition of the first."""
        model, committed = SharingModel("sharing"), transaction()
        committed.committing(1)
        committed.commit()
        for name, offset in ((b"a0", 0), (b"a1", 1), (b"b0", 0)):
            model.sends({name: Result(PARTITION, offset, b"key", 0, committed)})
        return model

    def test_each_record_has_one_result(self, group: SharingModel) -> None:
        with pytest.raises(Violation, match="has two results"):
            group.check_results([b"a0", b"a1", b"b0"])

    def test_results_of_a_key_are_in_order(self, group: SharingModel) -> None:
        with pytest.raises(Violation, match="comes after"):
            group.check_results([b"a1", b"a0", b"b0"])

    def test_a_committed_result_is_visible(self, group: SharingModel) -> None:
        with pytest.raises(Violation, match="is not visible"):
            group.check_results([b"a0"])

    def test_no_record_is_skipped(self, group: SharingModel) -> None:
        group.check_complete([b"a0", b"a1"], {PARTITION: {0, 1}})
        with pytest.raises(Violation, match="was skipped"):
            group.check_complete([b"a1"], {PARTITION: {0, 1}})
        group.skip(PARTITION, 1)
        group.check_complete([b"a1"], {PARTITION: {0, 1}})
