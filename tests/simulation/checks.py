"""Checks inside the broker: at random moments, after each start, at the end."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.node.broker import Broker
from barnabas.protocol.delivery_state import Cause, RecordState
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.protocol.record_batch import BatchHeader, iterate_headers
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.log_store.partition_state_store import PartitionStateStore
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.share_member import ACCEPT, GAP, REJECT
from tests.simulation.decisions import Decisions, Ended
from tests.simulation.letter_checks import LetterChecks
from tests.simulation.model import PartitionModel, ShareModel, Violation
from tests.simulation.offset_checks import check_offsets
from tests.simulation.order_checks import check_order
from tests.simulation.transaction_model import Outcome
from tests.simulation.world import LiveTopic, World

_IMAGE_FIELDS = (
    "group_incarnation",
    "state_epoch",
    "checkpoint_epoch",
    "start_offset",
    "end_offset",
    "ranges",
    "deleted",
    "last_control_offset",
    "delta_count",
)
_OFFSETS_EVERY = 5
"""The replay of all offsets takes long, so it is not part of each inspection."""
_TYPE_OF_CAUSE: dict[Cause | None, int] = {Cause.ACCEPT: ACCEPT, Cause.REJECT: REJECT, Cause.GAP: GAP}

_StateKey = tuple[SharePartitionKey, int, int]
"""Share-partition, group incarnation, state epoch."""


class Checks:
    """The checks of one run, and their observations up to now."""

    def __init__(self, world: World, decisions: Decisions) -> None:
        self._world = world
        self._decisions = decisions
        self.letters = LetterChecks(world, decisions)
        self._spso_by_state: dict[_StateKey, tuple[int, PartitionLog]] = {}
        """The last start offset of each state, and the log from which it was seen, as it was opened then."""
        self._power_losses_seen = 0
        self._inspections = 0

    def inspect(self) -> None:
        """Checks the promises that hold at any moment."""
        broker = self._world.machine.broker
        if broker is None:
            return
        for leader in list(broker.share_partitions):
            if leader.log.offline is None and not leader.closed:
                self._check_start_offset(leader)
                self._check_final_records(leader)
                check_order(self._world, leader)
                if self._world.scenario.keeps_state_in_log:
                    self._check_replay(leader)
        self._check_logs()
        self._inspections += 1
        if self._world.scenario.sharers and self._inspections % _OFFSETS_EVERY == 0:
            check_offsets(broker, self._world.ordinary.sharing.name)

    def _check_start_offset(self, leader: SharePartitionLeader) -> None:
        """Within one state epoch the start offset never goes back, except to the end of a log that was opened
        again.

        An administrator may set it beyond that end. A state in another log cannot tell this from lost
        records, and lets no new record be skipped (docs/decisions/0009).
        """
        state = leader.key, leader.image.group_incarnation, leader.image.state_epoch
        seen, log = self._spso_by_state.get(state, (-1, leader.log))
        if log is not leader.log and not self._world.scenario.keeps_state_in_log:
            seen = min(seen, leader.log.opened_end_offset)
        if leader.core.spso < seen:
            raise Violation(f"{_name(leader)}: the start offset went from {seen} to {leader.core.spso}")
        self._spso_by_state[state] = leader.core.spso, leader.log

    def _check_final_records(self, leader: SharePartitionLeader) -> None:
        """No record that was confirmed as final is available in the live state, so the next fetch does not
        deliver it.
        """
        share = self._world.model.share(leader.group_id, leader.key.topic_id_partition)
        core = leader.core
        for one in core.durable_ranges(core.spso, core.speo - 1):
            if one.state is RecordState.AVAILABLE:
                for offset in range(one.base_offset, one.last_offset + 1):
                    if offset in share.final:
                        raise Violation(f"{share.name}: {offset} was confirmed as final, but is available")

    def _check_replay(self, leader: SharePartitionLeader) -> None:
        """Replaying the log gives the leader's durable state."""
        store = PartitionStateStore(leader.log, self._world.machine.clock.wall_ms, 0)
        try:
            loaded = store.load(leader.group_id, leader.image.group_incarnation)
        except StorageError as error:
            if self._world.machine.disk.faults.unreadable_path is None:
                raise Violation(f"{_name(leader)}: its state cannot be read: {error}") from error
            return
        if loaded is None:
            if leader.image.checkpoint_epoch:
                raise Violation(f"{_name(leader)}: the log has no state of it")
            return
        for name in _IMAGE_FIELDS:
            replayed, live = getattr(loaded, name), getattr(leader.image, name)
            if replayed != live:
                raise Violation(f"{_name(leader)}: {name} is {live}, but {replayed} by the log")

    def _check_logs(self) -> None:
        """Confirmed records are below the high watermark."""
        for partition, model in self._world.model.partitions.items():
            log = self._world.log(partition)
            if log is not None and model.confirmed and max(model.confirmed) >= log.high_watermark:
                raise Violation(
                    f"{model.name}: {max(model.confirmed)} was confirmed, the high watermark is "
                    f"{log.high_watermark}"
                )

    # After a start.

    async def after_start(self, broker: Broker) -> None:
        """Confirmed changes survive the end of a process, and the end of power where `log.flush` promises it.
        Elsewhere the model accepts the loss.
        """
        world = self._world
        power_losses = world.machine.power_loss_count
        may_lose = power_losses > self._power_losses_seen and not world.scenario.survives_power_loss
        world.ordinary.end_process(world.now_ms)
        if may_lose:
            self._give_in()
        for topic in list(world.topics.values()):
            if topic.topic_id not in broker.metadata.image.topics_by_id:
                if not may_lose:
                    raise Violation(f"{topic.name} was created, but is missing")
                world.model.forget_topic(topic.topic_id)
                del world.topics[topic.name]
        if may_lose:
            world.ledger = self._recovered(broker, world.ledger)
            world.orders = self._recovered(broker, world.orders)
            world.results = self._recovered(broker, world.results)
        for partition, model in list(world.model.partitions.items()):
            await self._check_recovered(broker, partition, model, may_lose=may_lose)
        self._power_losses_seen = power_losses

    def _recovered(self, broker: Broker, topic: LiveTopic | None) -> LiveTopic | None:
        if topic is None or topic.topic_id in broker.metadata.image.topics_by_id:
            return topic
        self._world.model.forget_topic(topic.topic_id)
        return None

    def _give_in(self) -> None:
        self._spso_by_state.clear()
        self._decisions.note_loss()
        self._world.ordinary.give_in(self._world.now_ms)
        for group in self._world.model.groups.values():
            group.delivery_count_max.unsettle()
            group.lock_duration_ms.unsettle()
            group.key_run_max.unsettle()
            group.backoff_ms.unsettle()

    async def _check_recovered(
        self, broker: Broker, partition: TopicIdPartition, model: PartitionModel, *, may_lose: bool
    ) -> None:
        topic = broker.metadata.image.topics_by_id.get(partition.topic_id)
        end_offset = 0
        if topic is not None and partition.partition < len(topic.partitions):
            try:
                log = await broker.logs.open(topic, partition.partition)
                end_offset = _end_of_records(log) if may_lose else log.log_end_offset
            except StorageError:
                if not may_lose:
                    return  # Any error may keep it from being opened now; nothing may be missing later.
        model.cut(end_offset, may_lose_confirmed=may_lose)
        if may_lose:
            for share, incarnation in self._shares(broker, partition):
                # A reset is written to the group's log and to the partition's log. If the group's log lost
                # it, the reset is repeated on the state that the partition's log still has.
                is_same = incarnation is not None and share.incarnation == incarnation
                if is_same and not share.was_reset and self._world.scenario.keeps_state_in_log:
                    share.cut(end_offset)
                else:
                    share.forget()

    def _shares(self, broker: Broker, partition: TopicIdPartition) -> Iterator[tuple[ShareModel, int | None]]:
        for key, share in self._world.model.shares.items():
            if key.topic_id_partition == partition:
                yield share, broker.group_incarnation(key.group_id)

    # At the end.

    def account(self) -> None:
        """Each confirmed record that is still in its log was ended for a known reason."""
        for group_id in self._world.scenario.group_ids:
            for topic in self._world.topics.values():
                for partition in topic.partitions:
                    self._account(group_id, partition)

    def _account(self, group_id: str, partition: TopicIdPartition) -> None:
        log = self._world.log(partition)
        share = self._world.model.share(group_id, partition)
        key = SharePartitionKey(group_id, *partition)
        ended = self._decisions.ended.get(key, {})
        assert log is not None, share.name
        first_offset = max(log.log_start_offset, share.skipped_until, self._decisions.gone_below.get(key, 0))
        for offset in self._world.model.partition(partition).confirmed:
            if offset < first_offset or self._is_compacted(partition, offset):
                continue
            if not any(self._is_explained(key, share, offset, why) for why in ended.get(offset, ())):
                raise Violation(f"{share.name}: no known reason why {offset} is final: {ended.get(offset)}")
            self.letters.check_given_up(key, offset)

    def _is_explained(self, key: SharePartitionKey, share: ShareModel, offset: int, why: Ended) -> bool:
        """Whether a client or an administrator requested this end, the delivery limit was reached, or the
        record never counted.
        """
        if why.cause is Cause.DELIVERY_LIMIT:
            least = min(self._world.model.group(key.group_id).delivery_count_max.values_since(0))
            return why.delivery_count >= least
        if why.cause is Cause.TRANSACTION_ABORTED:
            is_of_committed = key.group_id in self._world.scenario.groups_of_committed
            return is_of_committed and self._may_be_aborted(key.topic_id_partition, offset)
        if why.cause is Cause.EXPIRED:
            timing = self._world.scenario.timing
            return bool(timing.ttl_ms) and key.group_id in timing.group_ids
        if why.cause is Cause.ADMIN:
            return offset in share.administered
        ack_type = _TYPE_OF_CAUSE.get(why.cause)
        pending = self._world.pending(key.group_id, key.topic_id_partition)
        return ack_type in share.acknowledged.get(offset, ()) or pending.explains(offset, ack_type)

    def _is_compacted(self, partition: TopicIdPartition, offset: int) -> bool:
        """Whether compaction may have removed the record, because a later one has its key."""
        keys, model = self._world.keys, self._world.model.partition(partition)
        key = keys.key_of(model.confirmed[offset]) if keys.compacts else None
        later = (value for value, other in model.offset_by_value.items() if other > offset)
        return key is not None and key in map(keys.key_of, later)

    def _may_be_aborted(self, partition: TopicIdPartition, offset: int) -> bool:
        value = self._world.model.partition(partition).confirmed[offset]
        transaction = self._world.ordinary.transactions.by_value.get(value)
        if transaction is None:
            return False
        clock = self._world.machine.clock
        is_timed_out = transaction.outcome is Outcome.OPEN and not transaction.is_surely_open(
            clock.wall_ms(), clock.change_count
        )
        if transaction.outcome is Outcome.ENDING or is_timed_out:
            transaction.abort()  # a reader that misses it would decide so, and all other readers must agree
        return transaction.outcome in (Outcome.ABORTED, Outcome.LOST)


def _name(leader: SharePartitionLeader) -> str:
    return f"{leader.group_id}/{leader.key.topic_id.hex[:4]}-{leader.key.partition}"


def _end_of_records(log: PartitionLog) -> int:
    """The end of the log without the markers at its very end: the start itself may have written them in place
    of lost records.
    """
    end_offset = log.log_end_offset
    for header in reversed(list(_headers(log))):
        is_marker = header.is_control and header.is_transactional
        if not is_marker or header.base_offset + header.last_offset_delta + 1 != end_offset:
            break
        end_offset = header.base_offset
    return end_offset


def _headers(log: PartitionLog) -> Iterator[BatchHeader]:
    """The headers of all batches except share state; a read ends with its segment."""
    offset = log.log_start_offset
    while data := b"".join(log.read(offset, bytes_max=1 << 30).buffers):
        for _, header in iterate_headers(data):
            offset = header.base_offset + header.last_offset_delta + 1
            yield header
