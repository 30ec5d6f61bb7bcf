"""Producers, faults and restarts in random order: a transaction is always committed in all partitions or in
none, as its producer was answered, and nothing stays open.

Each history comes from one seed. Producers write to simulated partitions, which remember their records and
markers. At the end all faults are repaired, time passes, and every record must have an outcome.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

import pytest

from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition
from barnabas.runtime.completion import Completion
from tests.coordinator.simulated_log import error_of
from tests.coordinator.transaction.transaction_bench import TIMEOUT_MS, Bench

PARTITIONS = [
    TopicNamePartition("orders", 0),
    TopicNamePartition("orders", 1),
    TopicNamePartition("bills", 0),
]
IDS = ["a", "b", "c"]
STEPS = 120
PASSING = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
    }
)
"""The errors after which a client retries."""


@dataclass
class Story:
    """One transaction of one producer: its writes, and the answer to its end."""

    name: str
    wish: bool | None = None
    """Whether it asked for a commit, if it asked at all."""
    told: bool = False
    """Whether it heard that this was done."""
    may_be_either: bool = False
    """It asked, and will never know."""


@dataclass
class Agent:
    """A client with a transactional id, which does one thing after another."""

    transactional_id: str
    version: int
    producer: ProducerIdentity | None = None
    story: Story | None = None
    pending: Completion[ProducerIdentity] | None = None
    stories: list[Story] = field(default_factory=list[Story])

    @property
    def is_ending(self) -> bool:
        """Whether it has asked for the end, and has to ask until it hears of it."""
        return self.story is not None and self.story.wish is not None

    def begin(self) -> Story:
        self.story = Story(f"{self.transactional_id}-{id(self)}-{len(self.stories)}")
        self.stories.append(self.story)
        return self.story

    def give_up(self) -> None:
        """The producer is fenced, or cannot go on."""
        if self.story is not None and self.story.wish is not None:
            self.story.may_be_either = True
        self.producer = self.story = self.pending = None


class History:
    """The coordinator, its surroundings and the agents, driven by one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.bench = Bench()
        self.bench.version = self.random.choice([0, 2, 2])
        self.events: dict[TopicNamePartition, list[Story | TransactionMarker]] = defaultdict(list)
        self.writers: dict[str, ProducerIdentity] = {}
        self.agents = [Agent(one, self.random.choice([0, 2])) for one in IDS for _ in range(2)]

    def run(self) -> None:
        steps = [
            (self.initialise, 4),
            (self.write, 10),
            (self.write_late, 4),
            (self.end, 6),
            (self.hear, 8),
            (self.pass_time, 3),
            (self.break_or_mend, 4),
            (self.restart, 1),
        ]
        for _ in range(STEPS):
            (step,) = self.random.choices([one for one, _ in steps], [weight for _, weight in steps])
            step()
            self.note_markers()
        self.settle()

    # Actions of agents

    def initialise(self) -> None:
        agent = self.random.choice(self.agents)
        if agent.producer is not None and self.random.random() < 0.7:
            return
        agent.give_up()
        reply = self.bench.coordinator.initialise(agent.transactional_id, TIMEOUT_MS, None)
        if reply.done and error_of(reply) is ErrorCode.none:
            agent.producer = reply.result()

    def write(self) -> None:
        agent = self.random.choice(self.agents)
        if agent.producer is None or agent.is_ending:
            return
        partition = self.random.choice(PARTITIONS)
        added = self.bench.start_add(
            agent.producer, partition, version=agent.version, transactional_id=agent.transactional_id
        )
        code = error_of(added) if added.done else ErrorCode.coordinator_not_available
        if code not in PASSING and code is not ErrorCode.none:
            agent.give_up()
            return
        try:
            takes_part = self.bench.coordinator.takes_part(agent.transactional_id, agent.producer, partition)
        except ApiError as error:
            if error.code not in PASSING:
                agent.give_up()
            return
        if takes_part:
            story = agent.story or agent.begin()
            self.writers[story.name] = agent.producer
            self.events[partition].append(story)

    def write_late(self) -> None:
        """A record arrives late: it was sent before the end, or its sender has died. It belongs to no other
        transaction, but must become stable.
        """
        agent = self.random.choice(self.agents)
        if agent.producer is None or not agent.is_ending:
            return
        partition = self.random.choice(PARTITIONS)
        try:
            takes_part = self.bench.coordinator.takes_part(agent.transactional_id, agent.producer, partition)
        except ApiError:
            return
        if takes_part:
            late = Story(f"late-{len(self.writers)}")
            self.writers[late.name] = agent.producer
            self.events[partition].append(late)

    def end(self) -> None:
        agent = self.random.choice(self.agents)
        if agent.producer is None or agent.story is None or agent.pending is not None:
            return
        story = agent.story
        if story.wish is None:
            story.wish = self.random.random() < 0.6
        agent.pending = self.bench.start_end(
            agent.producer,
            commit=story.wish,
            version=agent.version,
            transactional_id=agent.transactional_id,
        )

    def hear(self) -> None:
        for agent in self.agents:
            if agent.pending is None or not agent.pending.done:
                continue
            code = error_of(agent.pending)
            if code is ErrorCode.none:
                assert agent.story is not None
                agent.producer = agent.pending.result() if agent.version >= 2 else agent.producer
                agent.story.told = True
                agent.story = agent.pending = None
            elif code in PASSING:
                agent.pending = None
            else:
                agent.give_up()

    # Events for all

    def pass_time(self) -> None:
        self.bench.advance(self.random.choice([50, 500, TIMEOUT_MS // 2, 2 * TIMEOUT_MS]))

    def break_or_mend(self) -> None:
        log, partitions = self.bench.log, self.bench.partitions
        match self.random.randrange(6):
            case 0:
                log.held = True
            case 1:
                log.failing = not log.failing
            case 2:
                partitions.held = True
            case 3:
                partitions.failing[self.random.choice(PARTITIONS)] = OSError("disk")
            case 4:
                self.release()
            case _:
                self.mend()

    def restart(self) -> None:
        if self.random.random() < 0.5:
            # Its answers are lost with the broker.
            self.bench.log.failing = False
            self.note_markers()
            self.bench.restart()
            for agent in self.agents:
                agent.pending = None
        elif not self.bench.log.waiting:
            self.bench.log.failing = False
            self.bench.reload()

    def release(self) -> None:
        log = self.bench.log
        log.held = self.bench.partitions.held = False
        while log.waiting:
            log.release()
        self.bench.partitions.release()

    def mend(self) -> None:
        self.bench.log.failing = False
        self.bench.partitions.failing.clear()
        self.release()

    def note_markers(self) -> None:
        written = self.bench.partitions.written
        for participant, marker in written:
            assert isinstance(participant, TopicNamePartition)
            self.events[participant].append(marker)
        written.clear()

    def settle(self) -> None:
        """All faults are repaired, waiting requests end, and open transactions time out."""
        for _ in range(3):
            self.mend()
            self.hear()
            self.bench.advance(2 * TIMEOUT_MS)
            self.note_markers()

    # Invariants

    def outcomes(self) -> dict[str, set[bool]]:
        """By transaction, how its records ended: those of one partition all with the marker that follows."""
        found: dict[str, set[bool]] = defaultdict(set)
        for events in self.events.values():
            open_by_producer: dict[int, set[str]] = defaultdict(set)
            for event in events:
                if isinstance(event, Story):
                    open_by_producer[self.writers[event.name].producer_id].add(event.name)
                    continue
                for name in open_by_producer.pop(event.producer.producer_id, set()):
                    found[name].add(event.commit)
            left = [name for names in open_by_producer.values() for name in names]
            assert not left, f"left open: {left}"
        return found


@pytest.mark.seeds(60)
def test_a_transaction_ends_everywhere_as_its_producer_was_told(seed: int) -> None:
    history = History(seed)
    history.run()
    outcomes = history.outcomes()
    for agent in history.agents:
        for story in agent.stories:
            ends = outcomes[story.name]
            assert len(ends) == 1, f"{story} ended as {ends}"
            if story.told:
                assert ends == {story.wish}, story
            elif not story.may_be_either and story.wish is None:
                assert ends == {False}, story
    assert {history.bench.state(one.transactional_id) for one in history.agents if one.producer} <= {
        "Empty",
        "CompleteCommit",
        "CompleteAbort",
    }


def test_histories_are_worth_their_while() -> None:
    told = either = aborted = 0
    for seed in range(20):
        history = History(seed)
        history.run()
        stories = [story for agent in history.agents for story in agent.stories]
        told += sum(story.told and bool(story.wish) for story in stories)
        either += sum(story.may_be_either for story in stories)
        aborted += sum(story.wish is None for story in stories)
    assert min(told, either, aborted) > 5, (told, either, aborted)
