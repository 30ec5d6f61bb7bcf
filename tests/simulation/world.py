"""The things that the actors of a run share: the scenario drawn from the seed, the machine, the model, and
the topics known to exist.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.storage.log.partition_log import PartitionLog
from tests.simulation.client import SimulatedClient
from tests.simulation.keyed_records import NO_ORDER, KeyedRecords, OrderSettings, draw_order
from tests.simulation.letter_settings import NO_LETTERS, LetterSettings, draw_letters, with_giving_up
from tests.simulation.machine import Machine
from tests.simulation.model import Model
from tests.simulation.order_model import OrderModel
from tests.simulation.ordinary_model import OrdinaryModel
from tests.simulation.pending_model import PendingModel
from tests.simulation.prioritised_records import (
    NO_PRIORITIES,
    PrioritisedRecords,
    PrioritySettings,
    draw_priorities,
)
from tests.simulation.producer_batches import ProducerBatches
from tests.simulation.simulated_network import SimulatedNetwork
from tests.simulation.timing import NO_TIMING, TimingSettings, draw_timing
from tests.simulation.trace import Trace

COLD_TOPIC = "cold"
"""It has no readers, so the only promise is that its damage harms no other log."""
LEDGER_TOPIC = "ledger"
"""The administrator leaves it alone, so its name always means the same topic."""
LEDGER_PARTITIONS = 2
ORDERS_TOPIC, RESULTS_TOPIC = "orders", "results"
"""The input and output of the group whose members share partitions; the administrator leaves them alone."""

_UNKNOWN_END = 2**63 - 1
_IN_TRANSACTIONS = 0.5
"""The share of the runs with acknowledgements in transactions, where these are possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The random parameters of one run."""

    flush: str
    active_ms: int
    """The time during which clients work and faults happen, before the last phase."""
    group_ids: tuple[str, ...]
    members_per_group: int
    producer_count: int
    delivery_count_max: int
    lock_duration_ms: int
    settings: dict[str, str]
    fault_names: tuple[str, ...]
    fault_pause_ms: int
    admin_pause_ms: int
    classic_members: int
    classic_is_cooperative: bool
    consumer_members: int
    """Of a group whose coordinator divides the partitions (KIP-848)."""
    producers_of_transactions: int
    groups_of_committed: tuple[str, ...]
    """The share groups that read committed records only."""
    sharers: int
    """Members of the group that shares partitions."""
    orders_partitions: int
    shares_in_transactions: bool
    """Its members consume, process and produce in transactions."""
    shares_in_order: bool
    """Its commits wait for the stable offset."""
    sharers_change: bool
    """Its members sometimes do without individual commits."""
    order: OrderSettings = NO_ORDER
    """The share groups in the order of keys, and the keys of the records."""
    backoff_ms: int = 0
    """`share.retry.backoff.ms` of all share groups. It is 0 beside sharers, which would have less time for
    their work.
    """
    partitions_max: int = 3
    """The most partitions of a topic."""
    letters: LetterSettings = NO_LETTERS
    """The share groups with dead letters."""
    groups_in_transactions: tuple[str, ...] = ()
    """The share groups whose members acknowledge some of their records in transactions."""
    priorities: PrioritySettings = NO_PRIORITIES
    """The share groups that go by priorities."""
    timing: TimingSettings = NO_TIMING
    """The share groups in which records are delayed, or expire."""

    @property
    def keeps_state_in_log(self) -> bool:
        """Whether share state is in the log of the partition it belongs to."""
        return self.settings["share.state.store"] == "log"

    @property
    def survives_power_loss(self) -> bool:
        """Whether confirmed data must survive a loss of power."""
        return self.flush == "always"


def draw_scenario(random: Random, active_ms: int, fault_names: tuple[str, ...]) -> Scenario:
    """A random scenario; `fault_names` are the possible faults."""
    flush = random.choice(("interval", "never", "always", "always"))
    lock_duration_ms = random.choice((1000, 1500, 3000))
    delivery_count_max = random.choice((2, 3, 5, 10))
    settings = {
        "log.flush": flush,
        "share.state.store": random.choice(("log", "log", "topic")),
        "log.cleaner.min.cleanable.ratio": random.choice(("0.01", "0.5")),
        "log.flush.interval.ms": str(random.choice((200, 1000))),
        "log.retention.check.interval.ms": str(random.choice((700, 2000, 300_000))),
        "metadata.log.max.record.bytes.between.snapshots": str(random.choice((600, 20_000_000))),
        "share.coordinator.snapshot.update.records.per.snapshot": str(random.choice((0, 1, 3, 10, 500))),
        "group.share.delivery.count.limit": str(delivery_count_max),
        "group.share.record.lock.duration.ms": str(lock_duration_ms),
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.session.timeout.ms": "4000",
        "group.share.min.session.timeout.ms": "4000",
        "group.share.heartbeat.interval.ms": "1000",
        "group.share.min.heartbeat.interval.ms": "1000",
        "group.share.assignment.interval.ms": "100",
        "group.share.initialize.retry.interval.ms": "500",
        "connections.max.idle.ms": "8000",
    }
    group_ids = ("red", "green", "blue")[: random.randint(1, 3)]
    scenario = partial(
        Scenario,
        flush=flush,
        active_ms=active_ms,
        group_ids=group_ids,
        members_per_group=random.randint(1, 3),
        producer_count=random.randint(1, 2),
        delivery_count_max=delivery_count_max,
        lock_duration_ms=lock_duration_ms,
        settings=settings,
        fault_names=tuple(random.sample(fault_names, random.randint(0, len(fault_names)))),
        fault_pause_ms=random.choice((1000, 2500)),
        admin_pause_ms=random.choice((600, 2000)),
        classic_members=random.choice((0, 0, 1, 2, 3)),
        classic_is_cooperative=random.random() < 0.5,
        consumer_members=random.choice((0, 0, 1, 2, 3)),
        producers_of_transactions=random.choice((0, 0, 1, 2)),
        groups_of_committed=tuple(one for one in group_ids if random.random() < 0.3),
    )
    # Drawn last, so that the share groups of a seed stayed the same when ordinary clients were added.
    settings.update(_settings_of_ordinary_clients(random))
    ordered = _with_order(scenario(**_draw_sharing(random)), random)
    in_transactions = _with_transactions(_with_backoff(_with_letters(ordered, random), random), random)
    return _with_letters_given_up(_with_priorities_and_timing(in_transactions, random), random)


def _with_letters_given_up(scenario: Scenario, random: Random) -> Scenario:
    """Not in runs whose members leave for another reason."""
    letters = with_giving_up(random, scenario.letters)
    return scenario if scenario.timing.is_deserted else replace(scenario, letters=letters)


def _with_priorities_and_timing(scenario: Scenario, random: Random) -> Scenario:
    """Each for itself, so that some groups have both. Not beside sharers, which would have less time for
    their work.
    """
    if scenario.sharers:
        return scenario
    return replace(
        scenario,
        priorities=draw_priorities(random, scenario.group_ids),
        timing=draw_timing(random, scenario.group_ids),
    )


def _with_backoff(scenario: Scenario, random: Random) -> Scenario:
    return scenario if scenario.sharers else replace(scenario, backoff_ms=random.choice((0, 0, 300, 900)))


def _with_transactions(scenario: Scenario, random: Random) -> Scenario:
    """In about a third of the runs. A reader reads the records of the transactions."""
    chance = random.random()
    if chance >= _IN_TRANSACTIONS or scenario.sharers or scenario.order.compacts:
        return scenario
    return replace(
        scenario,
        groups_in_transactions=scenario.group_ids,
        producers_of_transactions=max(scenario.producers_of_transactions, 1),
    )


def _draw_sharing(random: Random) -> dict[str, Any]:
    in_transactions = random.random() < 0.7
    return {
        "sharers": random.choice((0, 0, 0, 0, 0, 2, 3, 4)),
        "orders_partitions": random.choice((1, 1, 2)),
        "shares_in_transactions": in_transactions,
        "shares_in_order": in_transactions and random.random() < 0.5,
        "sharers_change": random.random() < 0.5,
    }


def _with_order(scenario: Scenario, random: Random) -> Scenario:
    """Many members share few partitions, and the in-flight window is small."""
    # Not both in one run: many members of a share group would leave the sharers little time.
    order = NO_ORDER if scenario.sharers else draw_order(random)
    if not order.group_ids:
        return scenario
    scenario.settings["group.share.partition.max.record.locks"] = "100"
    return replace(
        scenario,
        order=order,
        group_ids=scenario.group_ids[:2],
        members_per_group=random.choice((2, 5, 16)),
        partitions_max=random.choice((1, 1, 3)),
        producers_of_transactions=0 if order.compacts else scenario.producers_of_transactions,
    )


def _with_letters(scenario: Scenario, random: Random) -> Scenario:
    """No letter is removed by its age, although wall time jumps ahead by days."""
    letters = draw_letters(random, scenario.group_ids)
    if not letters.group_ids or (scenario.sharers and scenario.shares_in_transactions):
        return scenario
    letters = letters._replace(syncs_records=letters.syncs_records and not scenario.survives_power_loss)
    flush = "interval" if letters.syncs_records else scenario.flush
    scenario.settings["log.flush"] = flush
    scenario.settings["log.retention.ms"] = "-1"
    scenario.settings["num.partitions"] = str(letters.partition_count)
    if letters.is_created_late:
        scenario.settings["errors.deadletterqueue.auto.create.topics.enable"] = "false"
    return replace(scenario, letters=letters, flush=flush)


def _settings_of_ordinary_clients(random: Random) -> dict[str, str]:
    session_ms = str(random.choice((1500, 3000)))
    return {
        "group.min.session.timeout.ms": "1000",
        "group.initial.rebalance.delay.ms": str(random.choice((0, 0, 300))),
        "group.consumer.session.timeout.ms": session_ms,
        "group.consumer.min.session.timeout.ms": session_ms,
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.min.assignment.interval.ms": "0",
        "group.consumer.assignment.interval.ms": str(random.choice((0, 200))),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    }


class LiveTopic(NamedTuple):
    """A topic that exists, as far as the administrator knows."""

    name: str
    topic_id: UUID
    partition_count: int

    @property
    def partitions(self) -> list[TopicIdPartition]:
        return [TopicIdPartition(self.topic_id, index) for index in range(self.partition_count)]


@dataclass(slots=True)
class World:
    """Everything that the actors share."""

    seed: str
    scenario: Scenario
    trace: Trace
    network: SimulatedNetwork
    machine: Machine
    model: Model
    keys: KeyedRecords
    priorities: PrioritisedRecords
    batches: ProducerBatches
    ordinary: OrdinaryModel = field(default_factory=OrdinaryModel)
    ledger: LiveTopic | None = None
    """`LEDGER_TOPIC`, if it exists."""
    orders: LiveTopic | None = None
    """`ORDERS_TOPIC`, if it exists."""
    results: LiveTopic | None = None
    """`RESULTS_TOPIC`, if it exists."""
    topics: dict[str, LiveTopic] = field(default_factory=dict[str, LiveTopic])
    leaving: set[str] = field(default_factory=set[str])
    """Groups whose members have to leave, because an administrator needs the group empty."""
    left: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The members that have left, by group."""
    clients: list[SimulatedClient] = field(default_factory=list[SimulatedClient])
    orders_of_keys: dict[SharePartitionKey, OrderModel] = field(
        default_factory=dict[SharePartitionKey, OrderModel]
    )
    pending_by_key: dict[SharePartitionKey, PendingModel] = field(
        default_factory=dict[SharePartitionKey, PendingModel]
    )
    is_ending: bool = False
    """The last phase: producers stop, and consumers accept every record."""
    is_calm: bool = False
    """The effects of all faults have passed, too."""

    @property
    def lasting_topics(self) -> list[LiveTopic]:
        """The topics that the administrator leaves alone."""
        return [one for one in (self.ledger, self.orders, self.results) if one is not None]

    @property
    def now_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000

    def random(self, name: str) -> Random:
        """A random generator for one actor, so that one actor does not influence the others."""
        return Random(f"{self.seed}/{name}")

    def client(self, client_id: str) -> SimulatedClient:
        client = SimulatedClient(self.network, client_id)
        self.clients.append(client)
        return client

    def order(self, group_id: str, partition: TopicIdPartition) -> OrderModel:
        """The group's order of keys in the partition."""
        key = SharePartitionKey(group_id, *partition)
        if key not in self.orders_of_keys:
            share, group = self.model.share(group_id, partition), self.model.group(group_id)
            timing = self.scenario.timing
            self.orders_of_keys[key] = OrderModel(
                share,
                group,
                self.keys,
                lambda: self.log_start_offset(partition),
                lambda: self.group_start_offset(group_id, partition),
                may_expire=bool(timing.ttl_ms) and group_id in timing.group_ids,
            )
        return self.orders_of_keys[key]

    def pending(self, group_id: str, partition: TopicIdPartition) -> PendingModel:
        """The group's acknowledgements in transactions in the partition."""
        key = SharePartitionKey(group_id, *partition)
        if key not in self.pending_by_key:
            share = self.model.share(group_id, partition)
            self.pending_by_key[key] = PendingModel(share, partial(self.log_end_offset, partition))
        return self.pending_by_key[key]

    def log_end_offset(self, partition: TopicIdPartition) -> int:
        """The current end of the partition's log; infinite if no broker serves it."""
        log = self.log(partition)
        return _UNKNOWN_END if log is None else log.log_end_offset

    def log_start_offset(self, partition: TopicIdPartition) -> int:
        """The present start of the partition's log; infinite if no broker serves it: then no order of records
        can be checked, because they may have been deleted.
        """
        log = self.log(partition)
        return _UNKNOWN_END if log is None else log.log_start_offset

    def group_start_offset(self, group_id: str, partition: TopicIdPartition) -> int:
        """The present start offset of the group; infinite if no leader serves."""
        broker = self.machine.broker
        key = SharePartitionKey(group_id, *partition)
        leader = None if broker is None else broker.share_partitions.in_memory(key)
        return _UNKNOWN_END if leader is None else leader.core.spso

    def log(self, partition: TopicIdPartition) -> PartitionLog | None:
        """The log, if there is a broker and it has it open."""
        broker = self.machine.broker
        topic = None if broker is None else broker.metadata.image.topics_by_id.get(partition.topic_id)
        if broker is None or topic is None:
            return None
        return broker.logs.get(topic, partition.partition)

    def group_incarnation(self, group_id: str) -> int | None:
        """The id that distinguishes the group from an earlier one of the same name; None if it is unknown at
        present.
        """
        broker = self.machine.broker
        return None if broker is None else broker.group_incarnation(group_id)
