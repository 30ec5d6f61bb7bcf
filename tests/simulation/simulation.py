"""One run, from its seed to its end: its parts, its actors and its verdict.

A run has two phases. First clients work, an administrator changes things, and faults happen. Then faults,
changes and producers stop, and the consumers accept all records: every group has to reach the end of every
partition, and each confirmed record must have ended for a known reason. The model (`model`) checks each
answer; `checks` looks inside the broker at random moments and after each start.

The seed decides everything random. Two runs of it are the same, call by call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch
from weakref import WeakKeyDictionary

from barnabas.broker.node.broker import Broker
from barnabas.protocol.errors import ErrorCode
from barnabas.share.leader import batch_keys
from barnabas.share.leader.handout import Handout
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.sweep import sweep
from tests.simulation.administrator import Administrator
from tests.simulation.checks import Checks
from tests.simulation.client import Disconnected
from tests.simulation.consumers import Consumer
from tests.simulation.copiers import Copier
from tests.simulation.dead_letters import DeadLetters
from tests.simulation.decisions import Decisions
from tests.simulation.faults import FAULTS, Faults
from tests.simulation.keyed_records import KeyedRecords
from tests.simulation.letters_given_up import give_letters_up
from tests.simulation.machine import DATA_DIRECTORY, Machine
from tests.simulation.model import Model, Violation
from tests.simulation.order_checks import check_order
from tests.simulation.ordinary_clients import OrdinaryClients
from tests.simulation.prioritised_records import PrioritisedRecords
from tests.simulation.priority_checks import PriorityCheck
from tests.simulation.producer_batches import ProducerBatches
from tests.simulation.producers import Producer
from tests.simulation.record_administrator import RecordAdministrator
from tests.simulation.simulated_disk import Disk
from tests.simulation.simulated_network import SimulatedNetwork
from tests.simulation.surroundings import surroundings
from tests.simulation.timing_checks import TimingChecks
from tests.simulation.trace import Trace
from tests.simulation.virtual_loop import Deadlock, Killed, Livelock, VirtualLoop
from tests.simulation.world import Scenario, World, draw_scenario

SHORT_MS = 4_000
"""The length of a run in the test suite."""

REST_SECONDS_MAX = 120.0
"""The longest virtual time without faults until every group has finished every record."""
_SWEEP_INTERVAL_MS = 700
_LINES_SHOWN = 60


class Failure(Exception):  # noqa: N818  named as an event
    """A run that broke a promise; the message has all that is needed to repeat it."""


class Result(NamedTuple):
    """A run that kept every promise."""

    trace_hash: str
    event_count: int
    virtual_ms: int


def simulate(seed: str, active_ms: int = SHORT_MS, fault_names: tuple[str, ...] = tuple(FAULTS)) -> Result:
    """Runs `seed`. Raises `Failure`."""
    loop = VirtualLoop()
    started_ms = loop.now_ms
    trace = Trace(lambda: loop.now_ms - started_ms)
    try:
        loop.run_until_complete(_Run(loop, trace, seed, active_ms, fault_names).run())
    except (Exception, Deadlock, Livelock) as error:
        raise Failure(_report(seed, active_ms, fault_names, trace, error)) from error
    finally:
        loop.bury_tasks()
        loop.close()
    return Result(trace.hexdigest(), trace.event_count, loop.now_ms - started_ms)


def scenario_of(
    seed: str, active_ms: int = SHORT_MS, fault_names: tuple[str, ...] = tuple(FAULTS)
) -> Scenario:
    """The parameters that the seed draws for its run."""
    return draw_scenario(Random(f"{seed}/scenario"), active_ms, fault_names)


def _report(
    seed: str, active_ms: int, fault_names: tuple[str, ...], trace: Trace, error: BaseException
) -> str:
    return "\n".join(
        (
            f"seed {seed}, step {trace.event_count}: {error!r}",
            *trace.last(_LINES_SHOWN),
            command_for(seed, active_ms, fault_names),
        )
    )


def command_for(seed: str, active_ms: int, fault_names: tuple[str, ...]) -> str:
    """The command that repeats a run, as a line for people."""
    faults = "" if fault_names == tuple(FAULTS) else f" FAULTS={','.join(fault_names)}"
    return f"To repeat it: make sim SEED={seed} LENGTH={active_ms}{faults}"


class _Run:
    """The state of one run."""

    def __init__(
        self, loop: VirtualLoop, trace: Trace, seed: str, active_ms: int, fault_names: tuple[str, ...]
    ) -> None:
        self._loop = loop
        self._trace = trace
        self._seed = seed
        self._active_ms = active_ms
        self._fault_names = fault_names
        self._failed: asyncio.Future[None] = loop.create_future()
        self._tasks: list[asyncio.Task[None]] = []
        self._priority_checks: WeakKeyDictionary[SharePartitionLeader, PriorityCheck] = WeakKeyDictionary()

    async def run(self) -> None:
        self._loop.set_exception_handler(self._note_unhandled)
        decisions = Decisions()
        with surroundings(self._trace, self._fail, decisions.leader_class()):
            self._build(decisions)
            hashed_records_max = self._world.scenario.order.hashed_records_max
            try:
                with (
                    patch.object(batch_keys, "HASHED_RECORDS_MAX", hashed_records_max),
                    patch.object(sweep, "SWEEP_INTERVAL_MS", _SWEEP_INTERVAL_MS),
                ):
                    await self._act()
            finally:
                await self._tear_down()

    def _build(self, decisions: Decisions) -> None:
        scenario = scenario_of(self._seed, self._active_ms, self._fault_names)
        self._trace.event(f"{scenario}")
        disk = Disk(Random(f"{self._seed}/disk"), self._trace)
        disk.make_durable_directory(DATA_DIRECTORY)
        network = SimulatedNetwork(Random(f"{self._seed}/network"))
        machine = Machine(
            disk, network, self._trace, Random(f"{self._seed}/machine"), scenario.settings, self._after_start
        )
        model = Model(scenario.delivery_count_max, scenario.lock_duration_ms)
        machine.clock.on_set = model.set_clock
        keys = KeyedRecords(Random(f"{self._seed}/keys"), scenario.order)
        priorities = PrioritisedRecords(scenario.priorities)
        batches = ProducerBatches(Random(f"{self._seed}/batches"), scenario.timing, priorities)
        self._world = World(
            self._seed, scenario, self._trace, network, machine, model, keys, priorities, batches
        )
        self._checks = Checks(self._world, decisions)
        decisions.on_acquired = self._check_acquired
        decisions.on_early = self._fail
        self._timing_checks = TimingChecks(self._world, self._fail)
        decisions.on_decided = self._timing_checks.check_decision

    def _check_acquired(self, leader: SharePartitionLeader, handout: Handout) -> None:
        """After an acquisition, within the broker's own code, which must not see the error."""
        try:
            check_order(self._world, leader)
            self._check_priorities(leader, handout)
        except Violation as error:
            self._fail(str(error))
        self._timing_checks.check_handout(leader, handout)

    def _check_priorities(self, leader: SharePartitionLeader, handout: Handout) -> None:
        check = self._priority_checks.get(leader)
        if check is None or not check.is_of_present_order:
            check = self._priority_checks[leader] = PriorityCheck(leader)
        check.acquired(handout)

    async def _after_start(self, broker: Broker) -> None:
        await self._checks.after_start(broker)

    async def _act(self) -> None:
        world, scenario = self._world, self._world.scenario
        administrator, faults = Administrator(world), Faults(world)
        self._start(world.machine.keep_running())
        await self._until(self._start(administrator.prepare()))
        letters = DeadLetters(world, self._checks.letters)
        await self._until(self._start(letters.prepare()))
        self._start(self._inspect())
        for group_id in scenario.group_ids:
            member_class = Copier if group_id in scenario.groups_in_transactions else Consumer
            for number in range(scenario.members_per_group):
                self._start(member_class(world, group_id, number).run())
        ordinary = OrdinaryClients(world)
        for member in ordinary.members():
            self._start(member)
        changing = [self._start(Producer(world, number).run()) for number in range(scenario.producer_count)]
        changing += [self._start(producer) for producer in ordinary.producers()]
        changing += [self._start(one.run()) for one in (administrator, RecordAdministrator(world), faults)]
        changing += [self._start(one) for one in letters.actors()]
        await self._until(self._start(asyncio.sleep(scenario.active_ms / 1000)))
        self._trace.event("== from here on nothing goes wrong")
        world.is_ending = True
        faults.end()
        await self._until(*changing)
        await self._until(self._start(administrator.settle_limits()))
        # A power failure may have brought a deleted topic back.
        await self._until(self._start(administrator.settle_topics()))
        await self._until(self._start(ordinary.settle()))
        await self._until(self._start(letters.settle()))
        await self._until(self._start(give_letters_up(world, administrator, letters)))
        await self._until(self._start(self._desert(administrator)))
        await self._until(self._start(self._come_to_rest(administrator)))
        await self._until(self._start(letters.read_everything()))
        self._checks.inspect()
        self._checks.account()

    async def _desert(self, administrator: Administrator) -> None:
        """Groups that are to be deserted lose all of their members, once they read every partition. Then the
        last records arrive. Only the broker can end these.
        """
        world = self._world
        if not world.scenario.timing.is_deserted:
            return
        async with asyncio.timeout(REST_SECONDS_MAX):
            while not await self._reads_everything(administrator):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        world.leaving.update(world.scenario.timing.group_ids)
        await asyncio.sleep(1)
        await Producer(world, world.scenario.producer_count).produce_everywhere()

    async def _come_to_rest(self, administrator: Administrator) -> None:
        """Waits until every group has finished every record."""
        left: list[str] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(REST_SECONDS_MAX):
                while True:
                    await asyncio.sleep(0.5)
                    with suppress(Disconnected):
                        await administrator.find_topics()
                        left = await self._lags()
                        if not left:
                            return
        raise Violation(f"not done after {REST_SECONDS_MAX} s without faults: {left}")

    async def _reads_everything(self, administrator: Administrator) -> bool:
        """Whether each group has a start offset in each partition."""
        with suppress(Disconnected):
            await administrator.find_topics()
            partition_count = sum(topic.partition_count for topic in self._world.topics.values())
            lags = [lag for _, lag, _ in await self._progress()]
            # A group that was deleted is not described before a member has joined it again.
            is_complete = len(lags) == partition_count * len(self._world.scenario.group_ids)
            return is_complete and min(lags, default=0) >= 0
        return False

    async def _lags(self) -> list[str]:
        """The groups' lags and errors, where something is left to do."""
        return [
            f"{name}: {lag}, {error.name}"
            for name, lag, error in await self._progress()
            if lag != 0 or error is not ErrorCode.none
        ]

    async def _progress(self) -> list[tuple[str, int, ErrorCode]]:
        """Each group's lag and error in each partition, in the broker's own answer."""
        client = self._world.client("observer")
        asked = [
            {"topic_name": topic.name, "partitions": list(range(topic.partition_count))}
            for topic in self._world.topics.values()
        ]
        groups = [{"group_id": one, "topics": asked} for one in self._world.scenario.group_ids]
        response = await client.ask("describe_share_group_offsets", groups=groups)
        client.disconnect()
        return [
            (f"{group.group_id} {topic.topic_name}-{one.partition_index}", one.lag, one.error_code)
            for group in response.groups
            for topic in group.topics
            for one in topic.partitions
        ]

    async def _inspect(self) -> None:
        chance = self._world.random("inspector")
        while True:
            await asyncio.sleep(chance.uniform(0.02, 0.4))
            self._checks.inspect()

    # Tasks and failures.

    def _start(self, actor: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(actor)
        self._tasks.append(task)
        task.add_done_callback(self._note_end)
        return task

    async def _until(self, *tasks: asyncio.Task[None]) -> None:
        """Waits until these tasks are done, or anything in the run has failed."""
        done = asyncio.ensure_future(asyncio.wait(tasks))
        waited: list[asyncio.Future[Any]] = [done, self._failed]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if self._failed.done():
            done.cancel()
            self._failed.result()

    def _note_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._failed.done():
            self._failed.set_exception(error)

    def _fail(self, reason: str) -> None:
        if not self._failed.done():
            self._failed.set_exception(Violation(reason))

    def _note_unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, Killed):
            self._fail(f"{context.get('message')}: {error!r}")

    async def _tear_down(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._world.machine.kill()
        for client in self._world.clients:
            client.disconnect()
        with suppress(BaseException):
            self._failed.exception()
