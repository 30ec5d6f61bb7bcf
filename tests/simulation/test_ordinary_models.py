"""The beliefs of the models of ordinary clients, and the answers that they call a broken promise."""

from math import inf
from uuid import UUID

import pytest

from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES
from tests.simulation.membership_model import GenerationModel, ReconciliationModel
from tests.simulation.model import Violation
from tests.simulation.offset_model import NO_OFFSET, OffsetModel
from tests.simulation.transaction_model import Outcome, Transaction, TransactionsModel

PARTITION, OTHER = TopicIdPartition(UUID(int=1), 0), TopicIdPartition(UUID(int=1), 1)


class TestOffsets:
    @pytest.fixture
    def offsets(self) -> OffsetModel:
        """One offset, 0, confirmed at 2."""
        model = OffsetModel("group/t-0")
        model.confirm(model.send(1), 2)
        return model

    @pytest.mark.parametrize("offset", [NO_OFFSET, 1])
    def test_an_overwritten_or_unsent_offset_is_not_in_force(self, offsets: OffsetModel, offset: int) -> None:
        with pytest.raises(Violation, match="in force"):
            offsets.saw(offset, sent_ms=3, now_ms=4)

    def test_a_commit_without_an_answer_may_be_in_force_or_not(self, offsets: OffsetModel) -> None:
        offsets.send(3)
        offsets.saw(0, sent_ms=4, now_ms=5)
        offsets.saw(1, sent_ms=6, now_ms=7)

    def test_a_committed_offset_does_not_go_back(self, offsets: OffsetModel) -> None:
        offsets.send(3)
        offsets.saw(1, sent_ms=6, now_ms=7)
        with pytest.raises(Violation):
            offsets.saw(0, sent_ms=8, now_ms=9)

    def test_of_two_overlapping_commits_either_may_be_the_last(self, offsets: OffsetModel) -> None:
        first, second = offsets.send(3), offsets.send(3)
        offsets.confirm(second, 4)
        offsets.confirm(first, 5)
        offsets.saw(2, sent_ms=6, now_ms=7)

    def test_a_refused_commit_is_not_in_force(self, offsets: OffsetModel) -> None:
        refused = offsets.send(3)
        offsets.refuse(refused)
        with pytest.raises(Violation):
            offsets.saw(refused.offset, sent_ms=6, now_ms=7)

    def test_a_commit_under_way_at_the_end_of_the_process_takes_no_effect_later(
        self, offsets: OffsetModel
    ) -> None:
        offsets.send(3)
        offsets.end_process(4)
        offsets.confirm(offsets.send(5), 6)
        with pytest.raises(Violation):
            offsets.saw(1, sent_ms=7, now_ms=8)

    def test_a_commit_that_waits_for_a_transaction_is_not_in_force_and_outlives_the_process(
        self, offsets: OffsetModel
    ) -> None:
        pending = offsets.send(inf)
        with pytest.raises(Violation):
            offsets.saw(pending.offset, sent_ms=4, now_ms=5)
        offsets.end_process(6)
        pending.sent_ms = 7
        offsets.saw(pending.offset, sent_ms=8, now_ms=9)

    def test_without_a_promise_any_commit_may_remain(self, offsets: OffsetModel) -> None:
        offsets.give_in(5)
        offsets.saw(NO_OFFSET, sent_ms=6, now_ms=7)
        offsets.saw(0, sent_ms=6, now_ms=7)


class TestGenerations:
    @pytest.fixture
    def group(self) -> GenerationModel:
        model = GenerationModel("group")
        model.assigned("a", 3, [PARTITION], 0)
        return model

    def test_a_partition_has_one_owner(self, group: GenerationModel) -> None:
        group.assigned("a", 3, [PARTITION], 3)
        group.assigned("b", 3, [OTHER], 3)
        group.assigned("b", 4, [PARTITION], 3)
        with pytest.raises(Violation, match="both own"):
            group.assigned("a", 4, [PARTITION], 3)

    def test_generations_do_not_go_back(self, group: GenerationModel) -> None:
        group.joined(3, 3)
        with pytest.raises(Violation, match="begins after"):
            group.joined(2, 3)
        with pytest.raises(Violation, match="syncs"):
            group.assigned("b", 2, [], 3)

    def test_no_member_commits_for_an_earlier_generation(self, group: GenerationModel) -> None:
        group.committed("a", 3, 3)
        with pytest.raises(Violation, match="commits after"):
            group.committed("a", 2, 3)


class TestReconciliation:
    @pytest.fixture
    def group(self) -> ReconciliationModel:
        """Member a has one partition, by an answer at 2, and is a member until 10 at least."""
        model = ReconciliationModel("group")
        model.given("a", {PARTITION: ALL_HASHES}, sent_ms=1, now_ms=2, until_ms=10)
        return model

    def test_a_partition_is_not_given_away_while_a_member_has_it(self, group: ReconciliationModel) -> None:
        with pytest.raises(Violation, match="holds it"):
            group.given("b", {PARTITION: ALL_HASHES}, sent_ms=3, now_ms=4, until_ms=20)

    def test_a_partition_is_given_away_after_it_was_given_up(self, group: ReconciliationModel) -> None:
        group.give_up("a")
        group.given("b", {PARTITION: ALL_HASHES}, sent_ms=3, now_ms=4, until_ms=20)

    def test_a_partition_is_given_away_after_the_session_may_have_ended(
        self, group: ReconciliationModel
    ) -> None:
        group.given("b", {PARTITION: ALL_HASHES}, sent_ms=3, now_ms=10, until_ms=20)

    def test_an_answer_from_an_earlier_incarnation_is_ignored(self, group: ReconciliationModel) -> None:
        group.given("b", {PARTITION: ALL_HASHES}, sent_ms=1, now_ms=4, until_ms=20)

    def test_epochs_do_not_go_back_unless_a_member_joins_anew(self, group: ReconciliationModel) -> None:
        group.told_epoch("a", 4)
        with pytest.raises(Violation, match="from epoch 4 to 3"):
            group.told_epoch("a", 3)
        group.left("a")
        group.told_epoch("a", 3)
        group.told_group_epoch(5, 0)
        with pytest.raises(Violation, match="the group goes"):
            group.told_group_epoch(4, 5)


class TestTransactions:
    @pytest.fixture
    def transaction(self) -> Transaction:
        return Transaction("id/0", begun_wall_ms=100, timeout_ms=50, clock_changes=0)

    @pytest.fixture
    def model(self, transaction: Transaction) -> TransactionsModel:
        """With one transaction, whose record at 7 was confirmed at 1."""
        model = TransactionsModel()
        model.begin(transaction)
        model.confirm(transaction, PARTITION, 7, 1, 1)
        return model

    def test_records_of_an_open_transaction_are_not_visible(self, transaction: Transaction) -> None:
        transaction.missed("t-0 7")
        with pytest.raises(Violation, match="is visible"):
            transaction.saw("t-0 7")

    def test_records_of_an_aborted_transaction_are_not_visible(self, transaction: Transaction) -> None:
        transaction.abort()
        with pytest.raises(Violation, match="is visible"):
            transaction.saw("t-0 7")

    def test_records_of_a_committed_transaction_are_visible(self, transaction: Transaction) -> None:
        transaction.committing(2)
        transaction.commit()
        transaction.saw("t-0 7")
        with pytest.raises(Violation, match="is not visible"):
            transaction.missed("t-0 7")

    def test_the_first_record_that_is_seen_decides_for_all(self, transaction: Transaction) -> None:
        transaction.committing(2)
        transaction.saw("t-0 7")
        with pytest.raises(Violation, match="is not visible"):
            transaction.missed("t-1 3")

    def test_the_first_record_that_is_missed_decides_for_all(self, transaction: Transaction) -> None:
        transaction.committing(2)
        transaction.missed("t-0 7")
        with pytest.raises(Violation, match="is visible"):
            transaction.saw("t-1 3")

    def test_the_outcome_of_a_transaction_does_not_change(self, transaction: Transaction) -> None:
        transaction.committing(2)
        transaction.missed("t-0 7")
        with pytest.raises(Violation, match="but was"):
            transaction.commit()

    def test_offsets_in_a_transaction_come_into_force_with_its_commit(self, transaction: Transaction) -> None:
        offsets = OffsetModel("group/t-0")
        transaction.offsets.append((offsets, offsets.send(inf)))
        transaction.committing(2)
        transaction.commit()
        transaction.complete(3)
        offsets.saw(0, sent_ms=4, now_ms=5)
        with pytest.raises(Violation):
            offsets.saw(NO_OFFSET, sent_ms=4, now_ms=5)

    @pytest.mark.parametrize(
        ("wall_ms", "clock_changes", "is_open"),
        [
            pytest.param(150, 0, True, id="in time"),
            pytest.param(151, 0, False, id="too late"),
            pytest.param(120, 1, False, id="the clock was set"),
        ],
    )
    def test_the_last_stable_offset_stays_before_a_transaction_that_is_certainly_open(
        self, model: TransactionsModel, wall_ms: int, clock_changes: int, is_open: bool
    ) -> None:
        def told(offset: int) -> None:
            model.check_stable_offset(
                PARTITION, offset, sent_ms=2, wall_ms=wall_ms, clock_changes=clock_changes
            )

        told(7)
        if not is_open:
            told(8)
            return
        with pytest.raises(Violation, match="last stable offset"):
            told(8)

    def test_without_a_promise_any_record_may_be_visible(
        self, model: TransactionsModel, transaction: Transaction
    ) -> None:
        model.lose()
        transaction.saw("t-0 7")
        assert transaction.outcome is Outcome.LOST
        assert model.at(PARTITION, 7) is None
