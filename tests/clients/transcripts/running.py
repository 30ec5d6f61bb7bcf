"""Runs a transcript's steps against one broker: commands in one JVM, or in a process of their own if they end
their whole process.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.clients.java_build import java_classpath, require
from tests.clients.share_probe import ShareProbe, ToolResult, patient
from tests.clients.transcripts.actions import Actions
from tests.clients.transcripts.normal_form import normal_form
from tests.clients.transcripts.transcript import Step

_TOOLS = "org.apache.kafka.tools."
MAIN_CLASSES = {
    "kafka-broker-api-versions": _TOOLS + "BrokerApiVersionsCommand",
    "kafka-client-metrics": _TOOLS + "ClientMetricsCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": _TOOLS + "consumer.ConsoleConsumer",
    "kafka-console-producer": _TOOLS + "ConsoleProducer",
    "kafka-console-share-consumer": _TOOLS + "consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": _TOOLS + "consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": _TOOLS + "ConsumerPerformance",
    "kafka-delete-records": _TOOLS + "DeleteRecordsCommand",
    "kafka-dump-log": _TOOLS + "DumpLogSegments",
    "kafka-features": _TOOLS + "FeatureCommand",
    "kafka-get-offsets": _TOOLS + "GetOffsetShell",
    "kafka-groups": _TOOLS + "GroupsCommand",
    "kafka-log-dirs": _TOOLS + "LogDirsCommand",
    "kafka-producer-perf-test": _TOOLS + "ProducerPerformance",
    "kafka-share-consumer-perf-test": _TOOLS + "ShareConsumerPerformance",
    "kafka-share-groups": _TOOLS + "consumer.group.ShareGroupCommand",
    "kafka-topics": _TOOLS + "TopicCommand",
    "kafka-transactions": _TOOLS + "TransactionsCommand",
    "kafka-verifiable-consumer": _TOOLS + "VerifiableConsumer",
    "kafka-verifiable-producer": _TOOLS + "VerifiableProducer",
    "kafka-verifiable-share-consumer": _TOOLS + "VerifiableShareConsumer",
}
_OWN_PROCESS = {"kafka-verifiable-consumer", "kafka-verifiable-producer", "kafka-verifiable-share-consumer"}
_WITHOUT_BROKER = {"kafka-dump-log"}


class Running:
    """A broker on which transcripts are played. `data_directory` has its logs."""

    def __init__(self, address: str, data_directory: Path, probe: ShareProbe, directory: Path) -> None:
        """`directory` is for files that actions create."""
        self._address = address
        self._probe = probe
        self._actions = Actions(address, directory)
        self._variables = {"$DATA": str(data_directory), "$DIR": str(directory), "$BROKER": address}
        self._secrets = [(value, name) for name, value in self._variables.items()]
        host, port = address.split(":")
        self._secrets += [(f":{port}", ":<port>"), (f"/{host}", "/<host>")]

    def play(self, step: Step) -> list[str]:
        """Execute a step; its output, in normal form."""
        if not step.is_command:
            self._actions.do(shlex.split(step.text), step.stdin)
            return []
        tool, *arguments = shlex.split(self._filled_in(step.text))
        result = self._run(tool, arguments, "".join(f"{line}\n" for line in step.stdin))
        is_measurement = "perf-test" in tool or "verifiable" in tool
        lines = [
            line
            for output in (result.output, result.errors)
            for line in normal_form(output, secrets=self._secrets, is_measurement=is_measurement)
        ]
        return lines if result.exit_code == 0 else [*lines, f"exit code {result.exit_code}"]

    def close(self) -> None:
        """End everything that actions have left open."""
        self._actions.close()

    def _filled_in(self, text: str) -> str:
        for name, value in self._variables.items():
            text = text.replace(name, value)
        return text

    def _run(self, tool: str, arguments: Sequence[str], stdin: str) -> ToolResult:
        if tool not in _WITHOUT_BROKER and "--bootstrap-controller" not in arguments:
            arguments = ["--bootstrap-server", self._address, *arguments]
        main = MAIN_CLASSES[tool]
        if tool in _OWN_PROCESS:
            return run_alone(main, arguments)
        return ToolResult(
            **self._probe.call("tool", "tool", main=main, arguments=patient(main, arguments), input=stdin)
        )


def run_alone(main: str, arguments: Sequence[str]) -> ToolResult:
    """Run a tool in a process of its own."""
    java = (require("java"), "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
    done = subprocess.run(
        [*java, "-cp", java_classpath(), main, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return ToolResult(done.returncode, done.stdout, done.stderr)
