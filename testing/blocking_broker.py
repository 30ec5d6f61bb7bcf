"""A broker for tests: its process, its clock, its faults, and the assertions about its state. Every method
blocks; `async_broker` has the same as coroutines, and `broker` both.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from barnabas.testing import records, share_state
from barnabas.testing.clock import Clock
from barnabas.testing.control import Control, ControlError, quoted
from barnabas.testing.faults import Faults
from barnabas.testing.process import Addresses, BrokerDied, BrokerProcess
from barnabas.testing.records import Expected, TopicRecord
from barnabas.testing.share_state import RecordState

DEFAULT_SETTINGS: Final[Mapping[str, str]] = {
    "share.state.store": "topic",
    "log.flush": "never",
    "connections.max.idle.ms": "-1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
}
"""The kit's settings: offsets without gaps, no fsync, idle connections stay open, small internal topics."""

ASSERT_SECONDS: Final = 60.0
"""How long an assertion waits by default, because clients write and acknowledge in the background."""

_LOOK_PAUSE_SECONDS: Final = 0.02


class BlockingBroker:
    """Call `start` and `close`; `Broker` does so in a `with` block."""

    def __init__(
        self, *, settings: Mapping[str, str] | None = None, directory: str | Path | None = None
    ) -> None:
        """`settings` are added to the kit's (docs/testing.md). A `directory` is kept; without one, the data
        is in a temporary directory, which `close` removes.
        """
        self._settings = {**DEFAULT_SETTINGS, **(settings or {})}
        self._kept_directory = None if directory is None else Path(directory)
        self._temporary: Path | None = None
        self._process: BrokerProcess | None = None
        self._addresses: Addresses | None = None
        self._control: Control | None = None

    # The process.

    def start(self) -> None:
        """Start the broker, and return when it serves. Raises BrokerDied."""
        assert self._process is None, "A broker is started once; restart starts it again."
        self._temporary = Path(tempfile.mkdtemp(prefix="barnabas-"))
        directory = self._kept_directory or self._temporary / "data"
        self._process = BrokerProcess(directory, self._temporary / "broker.log", self._settings)
        try:
            self._serve(self._process)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the broker, and remove its temporary directory."""
        self._let_go()
        if self._process is not None:
            self._process.stop()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def restart(self, *, crash: bool = False) -> None:
        """End the broker, and start it again with its data, its clock and its address; faults are gone.

        With `crash` it is killed, as with SIGKILL. Raises BrokerDied.
        """
        process = self._started()
        self._let_go()
        if crash:
            process.kill()
        else:
            process.stop()
        self._serve(process)

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, as host:port."""
        return self._running_at().bootstrap_servers

    @property
    def control_url(self) -> str:
        """The address of the controls, for programs in other languages; `control_token` belongs to it."""
        return self._running_at().control

    @property
    def control_token(self) -> str:
        return self._started().token

    @property
    def pid(self) -> int:
        """The process id. Raises BrokerDied if the process has ended."""
        return self._started().pid

    @property
    def log(self) -> str:
        """The lines that the broker has logged: warnings and errors."""
        return self._started().log()

    # The controls.

    @property
    def clock(self) -> Clock:
        return Clock(self._controls())

    @property
    def faults(self) -> Faults:
        return Faults(self._controls())

    def reset(self) -> None:
        """Remove all topics and groups, and disconnect all clients. New topics have new ids. Faults and the
        clock stay.
        """
        self._controls().ask("POST", "reset")

    def create_topic(
        self, name: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic. Raises ControlError, such as for a topic that exists."""
        body = {"name": name, "partitions": partitions, "configs": dict(settings or {})}
        self._controls().ask("POST", "topics", body)

    def configure_group(self, group: str, settings: Mapping[str, str]) -> None:
        """Change settings of a group, which need not exist. Raises ControlError for an invalid one."""
        self._controls().ask("POST", f"groups/{quoted(group)}/settings", {"configs": dict(settings)})

    # The state.

    def records(self, topic: str) -> list[TopicRecord]:
        """The committed records of a topic, by partition and offset. Raises ControlError if it is unknown."""
        return records.read_records(self._controls(), topic)

    def share_state(self, group: str) -> list[RecordState]:
        """The state of each record in the partitions that a share group reads, by topic, partition and
        offset. Nothing is acquired. Raises ControlError if the group is unknown.
        """
        return share_state.read_share_state(self._controls(), group)

    def assert_records(
        self,
        topic: str,
        expected: Sequence[Expected],
        *,
        in_any_order: bool = False,
        within_seconds: float = ASSERT_SECONDS,
    ) -> None:
        """Assert that the topic has these values, or these keys and values, by partition and offset.

        Waits until it has them. AssertionError with the difference after `within_seconds`.
        """

        def look() -> str | None:
            return records.difference(self.records(topic), expected, in_any_order=in_any_order)

        _assert_soon(look, f"The records of {topic}", within_seconds)

    def assert_share_state(
        self,
        group: str,
        expected: Mapping[int, str],
        *,
        topic: str,
        partition: int = 0,
        within_seconds: float = ASSERT_SECONDS,
    ) -> None:
        """Assert the state of each record of a partition, by offset, such as `{0: "acknowledged"}`.

        Waits until the states are these. AssertionError with the difference after `within_seconds`;
        ValueError for an unknown state.
        """
        share_state.check_states(expected)

        def look() -> str | None:
            states = self.share_state(group)
            found = [state for state in states if (state.topic, state.partition) == (topic, partition)]
            return share_state.difference(found, expected)

        _assert_soon(look, f"The states of {topic}-{partition} in group {group}", within_seconds)

    def _serve(self, process: BrokerProcess) -> None:
        self._addresses = process.start()
        self._control = Control(self._addresses.control, process.token)

    def _let_go(self) -> None:
        if self._control is not None:
            self._control.close()
        self._control = self._addresses = None

    def _started(self) -> BrokerProcess:
        if self._process is None:
            raise BrokerDied("The broker was not started. Use it in a with block.")
        return self._process

    def _controls(self) -> Control:
        if self._control is None:
            raise BrokerDied("The broker does not run. Use it in a with block.")
        return self._control

    def _running_at(self) -> Addresses:
        if self._addresses is None:
            raise BrokerDied("The broker does not run. Use it in a with block.")
        return self._addresses


def _assert_soon(look: Callable[[], str | None], subject: str, within_seconds: float) -> None:
    """Look until there is no difference, or the time is over."""
    deadline = time.monotonic() + within_seconds
    while (found := _look(look)) is not None:
        if time.monotonic() >= deadline:
            raise AssertionError(f"{subject} differ (- expected, + found):\n{found}")
        time.sleep(_LOOK_PAUSE_SECONDS)


def _look(look: Callable[[], str | None]) -> str | None:
    """The difference, or the error if there is no such topic or group: a client may create it soon."""
    try:
        return look()
    except ControlError as error:
        if not error.is_missing:
            raise
        return str(error)
