"""Drives Java's KafkaShareConsumer, Producer, Admin and command line tools from Python through one JVM.

`ShareProbe` is the process (java/src/main/java/barnabas/probe), `JavaShareConsumer` one consumer inside it. A
JVM needs a second to start, so tests share one, except tests that kill the process.
"""

import itertools
import json
import subprocess
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.clients.java_build import java_classpath, require
from tests.clients.polling import SECONDS_MAX

TIMEOUT_MS = round(SECONDS_MAX * 1000)

_JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m", "-Xshare:auto")


class JavaError(Exception):
    """An exception that the Java client raised; `kind` is its simple class name."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class JavaRecord(NamedTuple):
    """One delivered record."""

    topic: str
    partition: int
    offset: int
    key: str | None
    value: str | None
    headers: dict[str, str]
    delivery_count: int


class Commit(NamedTuple):
    """The result of a commit of acknowledgements for one partition; `error` is a Java class name or None."""

    topic: str
    partition: int
    error: str | None
    offsets: tuple[int, ...] = ()


class GroupOffset(NamedTuple):
    """The start offset of a share group in one partition; `lag` is None if the broker does not know it."""

    topic: str
    partition: int
    start_offset: int
    lag: int | None


@dataclass(frozen=True)
class ToolResult:
    """The output of a command line tool, and its exit code."""

    exit_code: int
    output: str
    errors: str

    def rows(self) -> list[list[str]]:
        """The printed lines, split at white space, without empty ones."""
        return [line.split() for line in self.output.splitlines() if line.strip()]


def patient(main: str, arguments: Sequence[str]) -> list[str]:
    """The arguments of a command line tool that make it wait for the broker: by themselves, two tools give up
    after 5 seconds.
    """
    if main.endswith(("ConsumerGroupCommand", "ShareGroupCommand")) and "--timeout" not in arguments:
        return [*arguments, "--timeout", str(TIMEOUT_MS)]
    return list(arguments)


@dataclass
class ShareProbe:
    """A JVM that runs probe commands against one broker."""

    bootstrap: str
    _pending: dict[int, Future[Any]] = field(default_factory=dict[int, "Future[Any]"])
    _ids: Iterable[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        command = [require("java"), *_JVM_OPTIONS, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        self._process = subprocess.Popen(
            [*command, "-cp", java_classpath(), "barnabas.probe.ShareProbe"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._numbers = iter(self._ids)
        self._write_lock = threading.Lock()
        self._reader = threading.Thread(target=self._read_answers, name="share-probe", daemon=True)
        self._reader.start()

    def send(self, target: str, op: str, **arguments: Any) -> "Future[Any]":
        """Start a command on the target's thread; the future gets its result or a JavaError."""
        assert self._process.stdin is not None
        answer: Future[Any] = Future()
        with self._write_lock:
            number = next(self._numbers)
            self._pending[number] = answer
            command = {"id": number, "target": target, "op": op, **arguments}
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        return answer

    def call(self, target: str, op: str, **arguments: Any) -> Any:
        """Run a command on the target's thread and wait for its result."""
        return self.send(target, op, **arguments).result()

    def consumer(self, name: str, group: str, topics: Sequence[str], **config: object) -> "JavaShareConsumer":
        """Open a share consumer; settings are Java's, with underscores for dots."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": group, "client.id": name}
        settings |= {key.replace("_", "."): str(value) for key, value in config.items()}
        self.call(name, "open", config=settings, topics=list(topics))
        return JavaShareConsumer(self, name)

    def produce(self, topic: str, values: Sequence[str], **config: object) -> list[int]:
        """Produce values with the Java producer in as few batches as its settings allow; their offsets."""
        settings = {"bootstrap.servers": self.bootstrap, "linger.ms": "50"}
        settings |= {key.replace("_", "."): str(value) for key, value in config.items()}
        offsets: list[int] = self.call(
            "producer", "produce", config=settings, topic=topic, values=list(values)
        )
        return offsets

    def group_offsets(self, group: str) -> list[GroupOffset]:
        """Start offsets and lags of a share group from Java's Admin, by topic and partition."""
        found = self.call("admin", "group_offsets", config={"bootstrap.servers": self.bootstrap}, group=group)
        return sorted(GroupOffset(**each) for each in found)

    def tool(self, main: str, *arguments: str) -> ToolResult:
        """Run a command line tool's main class with `--bootstrap-server` and these arguments."""
        given = patient(main, ["--bootstrap-server", self.bootstrap, *arguments])
        result = self.call("tool", "tool", main=main, arguments=given)
        return ToolResult(**result)

    def kill(self) -> None:
        """End the process with SIGKILL: no consumer leaves its group."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            for line in answers:
                self._resolve(json.loads(line))
        for answer in list(self._pending.values()):
            answer.set_exception(JavaError("ProcessEnded", "the probe's JVM has ended"))

    def _resolve(self, answer: dict[str, Any]) -> None:
        pending = self._pending.pop(answer["id"])
        if "error" in answer:
            pending.set_exception(JavaError(answer["error"]["type"], answer["error"]["message"]))
        else:
            pending.set_result(answer["result"])


@dataclass(frozen=True)
class JavaShareConsumer:
    """A KafkaShareConsumer inside a probe."""

    probe: ShareProbe
    name: str

    def subscribe(self, *topics: str) -> None:
        """Replace the subscription."""
        self.probe.call(self.name, "subscribe", topics=list(topics))

    def poll(self, timeout_ms: int = 200) -> list[JavaRecord]:
        """One call of poll."""
        return [JavaRecord(**each) for each in self.probe.call(self.name, "poll", timeout_ms=timeout_ms)]

    def acknowledge(self, records: Iterable[JavaRecord], kind: str = "ACCEPT") -> None:
        """Mark records (of the latest poll) in the client; nothing is sent yet."""
        partitions: dict[tuple[str, int], list[int]] = {}
        for record in records:
            partitions.setdefault((record.topic, record.partition), []).append(record.offset)
        for (topic, partition), offsets in partitions.items():
            self.probe.call(
                self.name, "acknowledge", topic=topic, partition=partition, offsets=offsets, type=kind
            )

    def commit_sync(self, timeout_ms: int = TIMEOUT_MS) -> list[Commit]:
        """Send the acknowledgements and wait for the broker's answer, partition by partition."""
        return [Commit(**each) for each in self.probe.call(self.name, "commit_sync", timeout_ms=timeout_ms)]

    def commit_async(self) -> None:
        """Send the acknowledgements; the outcome appears in `outcomes`."""
        self.probe.call(self.name, "commit_async")

    def outcomes(self) -> list[Commit]:
        """The outcomes that the acknowledgement commit callback got since the last call."""
        return [_outcome(each) for each in self.probe.call(self.name, "outcomes")]

    def lock_timeout_ms(self) -> int | None:
        """The acquisition lock's duration in the broker's last answer."""
        timeout_ms: int | None = self.probe.call(self.name, "lock_timeout_ms")
        return timeout_ms

    def close(self, timeout_ms: int = TIMEOUT_MS) -> list[Commit]:
        """Close, which acknowledges the marked records and releases the rest; the callback's last
        outcomes.
        """
        return [_outcome(each) for each in self.probe.call(self.name, "close", timeout_ms=timeout_ms)]


def _outcome(fields: dict[str, Any]) -> Commit:
    return Commit(fields["topic"], fields["partition"], fields["error"], tuple(sorted(fields["offsets"])))
