"""The transaction coordinator on a simulated log, with partitions that accept markers or refuse them; the
test moves the time.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from uuid import UUID

from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
from barnabas.coordinator.transaction.ending import EndRequest
from barnabas.coordinator.transaction.record_factory import encode_record, record_of
from barnabas.coordinator.transaction.settings import TransactionSettings
from barnabas.coordinator.transaction.transaction import Participant, Transaction, TransactionState
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, SharePartitionKey, TopicNamePartition
from barnabas.runtime.completion import Completion
from tests.coordinator.alarm import Alarm
from tests.coordinator.simulated_log import SimulatedLog, take_all

ID = "payments"
TIMEOUT_MS = 60_000
FIRST_WALL_MS = 1_700_000_000_000
ORDERS, BILLS = TopicNamePartition("orders", 0), TopicNamePartition("bills", 3)
SHARED = SharePartitionKey("workers", UUID(int=5), 1)


class SimulatedPartitions:
    """Takes markers at once, when told to, or not (`MarkerWriter`)."""

    def __init__(self) -> None:
        self.written: list[tuple[Participant, TransactionMarker]] = []
        self.held = False
        self.waiting: list[Callable[[], None]] = []
        self.failing: dict[Participant, Exception] = {}

    def write_marker(self, participant: Participant, marker: TransactionMarker) -> Completion[None]:
        reply = Completion[None]()

        def end() -> None:
            error = self.failing.get(participant)
            if error is None:
                self.written.append((participant, marker))
                reply.complete(None)
            else:
                reply.fail(error)

        self.waiting.append(end)
        if not self.held:
            self.release()
        return reply

    def release(self) -> None:
        """End all that wait."""
        waiting, self.waiting = self.waiting, []
        for end in waiting:
            end()

    def ends(self) -> list[tuple[Participant, bool]]:
        """The partitions and whether they were told of a commit, oldest first."""
        return [(partition, marker.commit) for partition, marker in self.written]


class SimulatedProducerIds:
    """1000, 1001, ..., at once or when told to."""

    def __init__(self) -> None:
        self._ids = count(1_000)
        self.failing = False

    def next_id(self) -> Completion[int]:
        reply = Completion[int]()
        if self.failing:
            reply.fail(ApiError(ErrorCode.coordinator_not_available))
        else:
            reply.complete(next(self._ids))
        return reply


class Bench:
    """The coordinator with its surroundings. Monotonic time begins at 0."""

    def __init__(self, settings: TransactionSettings | None = None, *, loaded: bool = True) -> None:
        self.settings = settings or TransactionSettings(partition_count=2)
        self.log = SimulatedLog()
        self.partitions = SimulatedPartitions()
        self.producer_ids = SimulatedProducerIds()
        self.version = 2
        self.epoch = 7
        self.was_closed_cleanly = True
        """Whether the next start follows on a clean end."""
        self.now_ms = 0
        self.wall_shift_ms = 0
        """How far the wall clock was set forward since the first start."""
        self._alarm = Alarm()
        self.coordinator = self._new()
        if loaded:
            self.load()

    @property
    def wall_ms(self) -> int:
        return FIRST_WALL_MS + self.now_ms + self.wall_shift_ms

    def load(self) -> None:
        for partition in range(self.settings.partition_count):
            take_all(self.coordinator.load(partition, self.log.stored(partition)))
        self._alarm.deadline_moved(self.coordinator)

    def restart(self) -> None:
        """Go on with the records of the log; waiting clients are gone."""
        self.epoch += 1
        self.log.waiting.clear()
        self.partitions.waiting.clear()
        self.log.held = self.partitions.held = False
        self.coordinator = self._new()
        self.load()

    def reload(self) -> None:
        """The log was opened anew."""
        for partition in range(self.settings.partition_count):
            self.coordinator.unload(partition)
        self.load()

    def advance(self, elapsed_ms: int) -> None:
        """Let time pass; each deadline expires at its time."""
        until_ms = self.now_ms + elapsed_ms
        while (due_ms := self._alarm.armed_ms) is not None and due_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self._alarm.ring(self.coordinator, self.now_ms)
        self.now_ms = until_ms

    # Requests of producers.

    def start_init(
        self,
        expected: ProducerIdentity | None = None,
        *,
        transactional_id: str = ID,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Completion[ProducerIdentity]:
        return self.coordinator.initialise(transactional_id, timeout_ms, expected)

    def init(
        self, expected: ProducerIdentity | None = None, *, transactional_id: str = ID
    ) -> ProducerIdentity:
        return self.start_init(expected, transactional_id=transactional_id).result()

    def start_add(
        self,
        producer: ProducerIdentity,
        *partitions: Participant,
        version: int = 2,
        transactional_id: str = ID,
    ) -> Completion[None]:
        return self.coordinator.add_participants(
            transactional_id, producer, partitions, client_version=version
        )

    def add(self, producer: ProducerIdentity, *partitions: Participant, version: int = 2) -> None:
        self.start_add(producer, *partitions, version=version).result()

    def start_end(
        self,
        producer: ProducerIdentity,
        *,
        commit: bool = True,
        version: int = 2,
        transactional_id: str = ID,
    ) -> Completion[ProducerIdentity]:
        return self.coordinator.end(EndRequest(transactional_id, producer, commit, version))

    def end(self, producer: ProducerIdentity, *, commit: bool = True, version: int = 2) -> ProducerIdentity:
        return self.start_end(producer, commit=commit, version=version).result()

    # The state.

    def state(self, transactional_id: str = ID) -> str:
        return self.coordinator.describe(transactional_id).state

    def put(self, producer: ProducerIdentity, state: TransactionState, **fields: object) -> None:
        """Have the coordinator begin with one id in this state."""
        transaction = Transaction(
            transactional_id=ID,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            timeout_ms=TIMEOUT_MS,
            state=state,
            updated_at_ms=self.wall_ms,
            **fields,  # type: ignore[arg-type]
        )
        partition = self.coordinator.partition_of(ID)
        self.log.append(partition, [encode_record(record_of(transaction), self.version)])
        self.coordinator = self._new()
        self.load()

    def _new(self) -> TransactionCoordinator:
        return TransactionCoordinator(
            log=self.log,
            settings=self.settings,
            producer_ids=self.producer_ids,
            markers=self.partitions,
            coordinator_epoch=lambda: self.epoch,
            transaction_version=lambda: self.version,
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.wall_ms,
            on_deadline=lambda: self._alarm.deadline_moved(self.coordinator),
            was_closed_cleanly=self.was_closed_cleanly,
        )
