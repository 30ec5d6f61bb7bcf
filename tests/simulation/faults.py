"""The faults of a run: one after another, each for a while, at random."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.simulation.letter_settings import LETTER_TOPIC
from tests.simulation.world import COLD_TOPIC, LEDGER_TOPIC, World

_OPERATIONS_BEFORE_CRASH_MAX = 60
_FAULT_SECONDS_MAX = 2.5
_CRASH_WAIT_SECONDS = 3.0
_WALL_JUMP_MS = 3_600_000
_FLIPPED_SUFFIXES = (".log", "index", ".snapshot", "checkpoint", ".metadata")


class Faults:
    """Injects the scenario's faults into the machine, the disk and the network."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.random("faults")

    async def run(self) -> None:
        """One fault after another, until the last phase of the run; then all faults end."""
        faults = [FAULTS[name] for name in self._world.scenario.fault_names]
        while faults and not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0, 2 * self._world.scenario.fault_pause_ms) / 1000)
            if not self._world.is_ending:
                await self._random.choice(faults)(self)
        self.end()

    def end(self) -> None:
        """Ends all faults."""
        faults = self._world.machine.disk.faults
        faults.failing_path = faults.unreadable_path = faults.free_bytes = None
        faults.slow_ms = 0
        self._world.machine.disk.crash_at = None
        self._world.machine.clock.catch_up()

    # The machine.

    async def restart(self) -> None:
        await self._world.machine.stop()

    async def kill(self) -> None:
        self._note("kill -9")
        self._world.machine.kill()

    async def kill_in_the_middle(self) -> None:
        """Ends the process at one of its next operations on the disk."""
        disk = self._world.machine.disk
        disk.crash_at = disk.operation_count + self._random.randint(1, _OPERATIONS_BEFORE_CRASH_MAX)
        await asyncio.sleep(_CRASH_WAIT_SECONDS)
        disk.crash_at = None

    async def lose_power(self) -> None:
        self._note("the power is gone")
        self._world.machine.lose_power()

    async def set_clock(self) -> None:
        """Wall time jumps; monotonic time does not."""
        jump_ms = self._random.choice((-_WALL_JUMP_MS, -500, 500, _WALL_JUMP_MS, 24 * _WALL_JUMP_MS))
        self._note(f"the clock is set {jump_ms} ms ahead")
        self._world.machine.clock.move(jump_ms)

    # The disk.

    async def fail_writes(self) -> None:
        """EIO for one random log."""
        faults = self._world.machine.disk.faults
        names = [
            f"/{topic.name}-{index}/"
            for topic in self._world.topics.values()
            for index in range(topic.partition_count)
        ]
        names += ["/__consumer_offsets-", "/__transaction_state-", f"/{LEDGER_TOPIC}-"]
        if self._world.scenario.letters.group_ids:
            names += [f"/{LETTER_TOPIC}-"] * 3
        faults.failing_path = self._random.choice(names)
        self._note(f"writes below {faults.failing_path} fail")
        await self._while_it_lasts()
        faults.failing_path = None

    async def fail_reads(self) -> None:
        faults = self._world.machine.disk.faults
        faults.unreadable_path = "/topic-"
        if self._world.scenario.letters.group_ids:
            faults.unreadable_path = self._random.choice(("/topic-", f"/{LETTER_TOPIC}-"))
        self._note("reads fail")
        await self._while_it_lasts()
        faults.unreadable_path = None

    async def fill_disk(self) -> None:
        faults = self._world.machine.disk.faults
        faults.free_bytes = self._random.randrange(4000)
        self._note(f"{faults.free_bytes} bytes of disk are free")
        await self._while_it_lasts()
        faults.free_bytes = None
        self._note("the disk has space again")

    async def slow_disk(self) -> None:
        faults = self._world.machine.disk.faults
        faults.slow_ms = self._random.choice((5.0, 30.0, 200.0))
        self._note(f"the disk takes {faults.slow_ms} ms longer")
        await self._while_it_lasts()
        faults.slow_ms = 0.0

    async def flip_bit(self) -> None:
        """In a log without readers: no other log may suffer."""
        flipped = self._world.machine.disk.flip_bit(f"/{COLD_TOPIC}-0/", _FLIPPED_SUFFIXES)
        self._note(f"a bit of {flipped} flips")

    # The network.

    async def cut_connection(self) -> None:
        links = self._world.network.links
        if links:
            self._note("a connection is cut")
            self._random.choice(links).cut()

    async def silence_connection(self) -> None:
        links = self._world.network.links
        if links:
            self._note("a connection falls silent")
            self._random.choice(links).fall_silent()

    async def _while_it_lasts(self) -> None:
        await asyncio.sleep(self._random.uniform(0.05, _FAULT_SECONDS_MAX))
        self._note("the fault has passed")

    def _note(self, what: str) -> None:
        self._world.trace.event(f"== {what}")


FAULTS: dict[str, Callable[[Faults], Awaitable[None]]] = {
    "restart": Faults.restart,
    "kill": Faults.kill,
    "kill-in-the-middle": Faults.kill_in_the_middle,
    "power-loss": Faults.lose_power,
    "clock": Faults.set_clock,
    "write-errors": Faults.fail_writes,
    "read-errors": Faults.fail_reads,
    "disk-full": Faults.fill_disk,
    "slow-disk": Faults.slow_disk,
    "bit-flips": Faults.flip_bit,
    "cut": Faults.cut_connection,
    "silence": Faults.silence_connection,
}
"""By the names of `--faults`."""
