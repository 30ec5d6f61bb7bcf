"""Plays transcripts on Apache Kafka and on Barnabas, and writes the recorded output again:

python -m tests.clients.transcripts.record [--kafka-only | --here-only] [NAME ...]

A difference that is new gets the reason `not explained`, to be replaced by hand; the reasons of others stay.
Look at the result as a diff.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.brokers.apache_kafka import SHORT_LIVED_JVM, ApacheKafka

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.installation import installed_barnabas
from tests.clients.share_probe import ShareProbe
from tests.clients.transcripts.running import Running
from tests.clients.transcripts.transcript import Step, names, read, write

UNEXPLAINED = "not explained"

_KAFKA_SETTLES_SECONDS = 0.4
"""Kafka's broker learns the decisions of its controller a little later. It does not tell when."""
_LOOKS_MAX = 20
"""How often a command that changes nothing is played until it prints what the transcript has: a Kafka may
settle more slowly, and a consumer may leave its group a moment after its tool has ended.
"""


def play_on_kafka(steps: Sequence[Step], probe: ShareProbe, directory: Path) -> list[list[str]]:
    """The output of a transcript's steps on an Apache Kafka of their own."""
    kafka = ApacheKafka(directory / "kafka", TEST_SETTINGS, jvm_options=SHORT_LIVED_JVM)
    try:
        kafka.start()
        running = Running(kafka.address, kafka.directory / "data", probe, directory)
        return _play(running, steps, [step.kafka for step in steps], _KAFKA_SETTLES_SECONDS)
    finally:
        kafka.kill()


def play_here(steps: Sequence[Step], probe: ShareProbe, directory: Path, command: Path) -> list[list[str]]:
    """The output on a broker that `command` starts."""
    with started(BrokerProcess(command, directory / "barnabas")) as broker:
        running = Running(broker.address, broker.data_directory, probe, directory)
        return _play(running, steps, [step.expected for step in steps], 0)


def _play(
    running: Running, steps: Sequence[Step], expected: Sequence[list[str]], pause_seconds: float
) -> list[list[str]]:
    printed: list[list[str]] = []
    try:
        for step, wanted in zip(steps, expected, strict=True):
            lines = running.play(step)
            time.sleep(pause_seconds)
            for _ in range(_LOOKS_MAX if step.only_looks else 0):
                if lines != wanted:
                    lines = running.play(step)
            printed.append(lines)
    finally:
        running.close()
    return printed


def _note(step: Step, kafka: list[str], here: list[str]) -> None:
    step.kafka = kafka
    step.here = here if here != kafka else []
    step.reason = None if here == kafka else step.reason or UNEXPLAINED


def record(name: str, probe: ShareProbe, *, on_kafka: bool, here: bool) -> None:
    """Write one transcript again, or the output of one of the two."""
    steps = read(name)
    of_kafka, of_here = [step.kafka for step in steps], [step.expected for step in steps]
    with tempfile.TemporaryDirectory() as text:
        if on_kafka:
            of_kafka = play_on_kafka(steps, probe, Path(text))
        if here:
            of_here = play_here(steps, probe, Path(text), installed_barnabas())
    for step, kafka, ours in zip(steps, of_kafka, of_here, strict=True):
        _note(step, kafka, ours)
    write(name, steps)
    differences = sum(step.reason is not None for step in steps)
    unexplained = sum(step.reason == UNEXPLAINED for step in steps)
    print(f"{name}: {len(steps)} steps, {differences} differences, {unexplained} not explained")


def main(arguments: Sequence[str]) -> None:
    on_kafka, here = "--here-only" not in arguments, "--kafka-only" not in arguments
    probe = ShareProbe("")
    try:
        for name in [one for one in arguments if not one.startswith("-")] or names():
            record(name, probe, on_kafka=on_kafka, here=here)
    finally:
        probe.kill()


if __name__ == "__main__":
    main(sys.argv[1:])
