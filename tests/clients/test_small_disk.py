"""A real filesystem of a few MiB that acknowledgements fill, that gets space, and that is filled again."""

import errno
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer

from barnabas.storage.directory.checkpoints import RECOVERY_POINT_FILE
from barnabas.storage.format.checkpoint_file import decode_offsets
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.cluster import NEVER_MS, Cluster, numbered
from tests.clients.confluent_polling import poll, poll_some, share_consumer
from tests.clients.installation import installed_barnabas
from tests.clients.java_polling import poll_some as poll_java
from tests.clients.java_polling import wait_for_lag
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.share_probe import JavaError, JavaRecord, JavaShareConsumer, ShareProbe

pytestmark = [pytest.mark.barnabas, pytest.mark.clients]

SETTINGS = {**TEST_SETTINGS, "log.flush.offset.checkpoint.interval.ms": "1000"}
RECORD_COUNT = 5000
LEFT_BYTES = 60_000
COMMIT_MS = 10_000
"""A commit on a disk with room takes less, also on a busy machine; on a full one it ends with this time."""


class SmallDisk:
    """A mounted filesystem with one large file that leaves the space that a test needs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, left_bytes: int = LEFT_BYTES) -> None:
        """Leave space for some hundred acknowledgements, or none at all while the broker writes as well."""
        with self._ballast.open("ab", buffering=0) as file:
            while (room := self._free_bytes() - left_bytes) > 0:
                try:
                    file.write(bytes(room))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    return

    def _free_bytes(self) -> int:
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def free(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Eight MiB, if the user may mount."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", tmp_path], check=False)
    if mounted.returncode:
        pytest.skip("mounting a file system takes more rights")
    yield SmallDisk(tmp_path)
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


class Worker:
    """A share consumer that accepts record by record."""

    def __init__(self, consumer: ShareConsumer) -> None:
        self._consumer = consumer
        self._held = poll_some(consumer)

    def accept(self, count: int) -> int:
        """Accept this number of records, or fewer if the broker refuses one; returns the number."""
        for number in range(count):
            if not self.accept_one():
                return number
        return count

    def accept_one(self) -> bool:
        """Whether the broker confirmed it; if not, all held records are released."""
        while not self._held:
            self._held = poll(self._consumer)
        self._consumer.acknowledge(self._held.pop(0))
        is_confirmed = set(self._consumer.commit_sync(SECONDS_MAX).values()) == {None}
        if not is_confirmed:
            self._give_back()
        return is_confirmed

    def _give_back(self) -> None:
        for message in self._held:
            self._consumer.acknowledge(message, AcknowledgeType.RELEASE)
        self._held.clear()
        self._consumer.commit_sync(SECONDS_MAX)


def verify(path: Path) -> list[str]:
    """The problems that `barnabas log verify` reports; work under way of a running broker is only a note."""
    command: list[str | Path] = [installed_barnabas(), "log", "verify", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else done.stdout.splitlines()


def recovery_point(data: Path, topic: str) -> int:
    """The recorded recovery point of partition 0."""
    path = data / RECOVERY_POINT_FILE
    return decode_offsets(path.read_bytes()).get((topic, 0), 0) if path.exists() else 0


def a_broker(data: Path, log: IO[str]) -> BrokerProcess:
    return BrokerProcess(installed_barnabas(), data, SETTINGS, errors=log)


def healthcheck(broker: BrokerProcess) -> tuple[int, str]:
    """The exit code, and the printed problem."""
    command: list[str | Path] = [installed_barnabas(), "healthcheck", broker.address]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_acknowledgements_that_fill_a_disk_twice_leave_nothing_for_verify_to_report(
    small_disk: SmallDisk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data, log_path = small_disk.path / "data", tmp_path_factory.mktemp("log") / "broker.log"
    with log_path.open("w") as log, started(a_broker(data, log)) as broker:
        cluster = Cluster(broker.address)
        topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=NEVER_MS)
        cluster.produce(topic, numbered(RECORD_COUNT))
        worker = Worker(share_consumer(broker.address, group, topic))
        assert worker.accept(300) == 300
        eventually(
            lambda: recovery_point(data, topic) > RECORD_COUNT,
            awaited="the recovery point is behind acknowledgements",
        )
        eventually(lambda: healthcheck(broker) == (0, ""), awaited="the broker is healthy")
        small_disk.fill()
        assert worker.accept(RECORD_COUNT) < RECORD_COUNT
        assert verify(data) == []
        eventually(lambda: f"cannot write to {data}" in healthcheck(broker)[1], awaited="the broker is ill")
        small_disk.free()
        eventually(worker.accept_one, awaited="there is room again")
        assert verify(data) == []
        eventually(lambda: healthcheck(broker)[0] == 0, awaited="the broker is healthy again")
        lines = [line for line in log_path.read_text().splitlines() if "error" in line or "warning" in line]
        assert [word in line for word, line in zip(("disk is full", "room again"), lines, strict=True)] == [
            True,
            True,
        ]
        assert worker.accept(500) == 500
        small_disk.fill()
        assert worker.accept(RECORD_COUNT) < RECORD_COUNT
        assert verify(data) == []


@pytest.fixture
def java(small_disk: SmallDisk) -> Iterator[ShareProbe]:
    """A JVM whose clients use the broker on the small disk."""
    with started(BrokerProcess(installed_barnabas(), small_disk.path / "data", SETTINGS)) as broker:
        probe = ShareProbe(broker.address)
        yield probe
        probe.kill()


def accept_one_by_one(
    consumer: JavaShareConsumer, records: Sequence[JavaRecord]
) -> Iterator[tuple[str | None, str | None]]:
    """The value of each record, and the result of its commit as the name of an exception.

    A commit that runs out of time is reported for its partition, or is thrown when the client
    notices the end of the time before the network thread does.
    """
    for record in records:
        consumer.acknowledge([record])
        try:
            (commit,) = consumer.commit_sync(COMMIT_MS)
        except JavaError as thrown:
            yield record.value, thrown.kind
        else:
            yield record.value, commit.error


def test_a_java_consumer_tries_again_while_the_disk_is_full_and_gets_its_records_again(
    small_disk: SmallDisk, java: ShareProbe
) -> None:
    """The log that is opened again has lost its locks. The client fetches in the background, and may have
    locked the records once more before it acknowledges the first delivery: the broker confirms that, too, and
    until there is room the commit runs out of time. Otherwise the record is not the client's any more.
    """
    cluster = Cluster(java.bootstrap)
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=NEVER_MS)
    values = numbered(100)
    cluster.produce(topic, values)
    consumer = java.consumer("worker", group, [topic], share_acknowledgement_mode="explicit")
    records = poll_java(consumer)
    assert [record.value for record in records] == values
    small_disk.fill(left_bytes=0)
    commits = accept_one_by_one(consumer, records)
    accepted: list[str | None] = []
    value, refusal = next(commits)
    while refusal is None:
        accepted.append(value)
        value, refusal = next(commits)
    refusals = {"TimeoutException", "InvalidRecordStateException"}
    assert refusal in refusals
    small_disk.free()
    results = list(commits)
    assert {error for _, error in results} <= {None, *refusals}
    accepted += [value for value, error in results if error is None]
    again = poll_java(consumer)
    assert {record.value for record in again} >= set(values) - set(accepted)
    accepted += [value for value, error in accept_one_by_one(consumer, again) if error is None]
    assert set(accepted) == set(values)
    wait_for_lag(java, group, 0)
