"""The brokers that the pipeline is tested against: this one, and Apache Kafka, started from nothing.

Both are `LocalBroker`s: `start`, `kill` (SIGKILL), `start` again on the same port and data, `stop`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.brokers.apache_kafka import SHORT_LIVED_JVM, ApacheKafka
from benchmarks.brokers.process import LocalBroker

from tests.clients.broker_process import TEST_SETTINGS
from tests.clients.installation import installed_barnabas

KINDS: Final = ("barnabas", "kafka")
SETTINGS: Final[Mapping[str, str]] = {**TEST_SETTINGS, "log.retention.ms": "-1"}
"""Some records have times of long ago, which a check of the retention, after some minutes, would delete."""


class InstalledBarnabas(LocalBroker):
    """The `barnabas serve` that is installed beside this Python."""

    def __init__(self, directory: Path) -> None:
        super().__init__("barnabas", directory)

    def command(self) -> Sequence[str]:
        settings = [f"--set={name}={value}" for name, value in SETTINGS.items()]
        data = str(self.directory / "data")
        return [str(installed_barnabas()), "serve", "--listen", self.address, "--data-dir", data, *settings]


class SharedBrokers:
    """Running brokers that tests share, one of each kind, started when a test first needs it.

    They are not to be stopped or killed; topics and groups have names of their own in each test.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._brokers: dict[str, LocalBroker] = {}
        self._failures: dict[str, Exception] = {}

    def __getitem__(self, kind: str) -> LocalBroker:
        """The broker; raises the error of its start for each test that needs it."""
        if kind not in self._brokers:
            self._brokers[kind] = new_broker(kind, self._directory / kind)
            try:
                self._brokers[kind].start()
            except Exception as error:
                self._failures[kind] = error
        if kind in self._failures:
            raise self._failures[kind]
        return self._brokers[kind]

    def kill(self) -> None:
        """Kill them: an orderly end may wait a minute for clients that are gone."""
        for broker in self._brokers.values():
            broker.kill()


def new_broker(kind: str, directory: Path) -> LocalBroker:
    """A broker of one of the `KINDS` that has not been started, with short locks and joins allowed."""
    if kind == "barnabas":
        return InstalledBarnabas(directory)
    settings = {**SETTINGS, "auto.create.topics.enable": "false"}
    return ApacheKafka(directory, settings, jvm_options=SHORT_LIVED_JVM)
