"""Apache Kafka, one KRaft node, from Maven's jars: the reference."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.clients.broker_process import reserved_port
from tests.clients.java_build import REFERENCE_VERSION, broker_classpath, require

from benchmarks.brokers.process import LocalBroker, sibling

MEASURED_JVM = ("-Xms1G", "-Xmx1G", "-XX:+UseG1GC")
SHORT_LIVED_JVM = ("-Xmx1G", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""For tests, which are over before it pays to compile Kafka well: a start takes 5 s of CPU instead of 8."""
_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


class ApacheKafka(LocalBroker):
    """Kafka with a heap of 1 GB, its defaults where they work on one node, and `settings`."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        version: str = REFERENCE_VERSION,
        jvm_options: Sequence[str] = MEASURED_JVM,
    ) -> None:
        super().__init__("kafka", directory)
        self.settings = settings or {}
        self.version = version
        self._jvm_options = jvm_options
        self._controller_port = reserved_port()

    def command(self) -> Sequence[str]:
        return [*self._java("error"), "kafka.Kafka", str(self._properties)]

    def prepare(self) -> None:
        self._properties.write_text("\n".join(f"{name}={value}" for name, value in self._settings().items()))
        format_storage = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._properties)]
        subprocess.run([*self._java("warn"), *format_storage], check=True, capture_output=True)

    def fresh(self) -> "ApacheKafka":
        return ApacheKafka(
            sibling(self.directory), self.settings, version=self.version, jvm_options=self._jvm_options
        )

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    def _java(self, log_level: str) -> list[str]:
        log = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"
        return [require("java"), *self._jvm_options, log, "-cp", broker_classpath(self.version)]

    def _settings(self) -> dict[str, object]:
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.directory / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # On a busy machine its heartbeats to itself are late, and a fenced broker serves nobody. After a
            # kill it can register again when its session is over.
            "broker.session.timeout.ms": 20_000,
            "initial.broker.registration.timeout.ms": 600_000,
            **self.settings,
        }
