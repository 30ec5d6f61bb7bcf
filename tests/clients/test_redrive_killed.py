"""`barnabas dlq redrive` is killed at each of its writing requests, stopped, and run twice at once: it
re-drives each letter once.
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.brokers.apache_kafka import SHORT_LIVED_JVM, ApacheKafka

from barnabas.__main__ import main
from barnabas.protocol.api import ApiKey
from tests.clients.broker_process import TEST_SETTINGS
from tests.clients.installation import installed_barnabas
from tests.clients.killing_proxy import KillingProxy, Moment, proxied_barnabas, proxying
from tests.clients.letters import LetterBox, numbered_records
from tests.clients.polling import eventually

pytestmark = [pytest.mark.barnabas, pytest.mark.clients]

CLIENT_ID = "barnabas-dlq"
WRITES = {
    ApiKey.CREATE_TOPICS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.PRODUCE,
    ApiKey.END_TXN,
}
LETTERS = 4
BATCH = 2
SLOW_LETTERS = 200
"""A run that is slow on purpose needs 50 s or more for them; each of these tests ends it early."""
REQUESTS_MIN = 2 + 2 * 5
"""Creating the journal and registering the producer; for each batch the two partitions that are added to the
transaction, the two that get records, and the commit."""
KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def barnabas_proxy(
    barnabas_command: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KillingProxy]:
    directory = tmp_path_factory.mktemp("broker") / "data"
    with proxied_barnabas(barnabas_command, directory, CLIENT_ID, WRITES) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def kafka_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillingProxy]:
    with proxying(CLIENT_ID, WRITES) as proxy:
        settings = {**TEST_SETTINGS, "advertised.listeners": f"PLAINTEXT://{proxy.address}"}
        directory = tmp_path_factory.mktemp("kafka") / "kafka"
        broker = ApacheKafka(directory, settings, jvm_options=SHORT_LIVED_JVM)
        broker.start()
        try:
            proxy.lead_to(broker.port)
            yield proxy
        finally:
            broker.kill()


@pytest.fixture(params=["barnabas", pytest.param("kafka", marks=pytest.mark.rare)])
def proxy(request: pytest.FixtureRequest) -> KillingProxy:
    found: KillingProxy = request.getfixturevalue(f"{request.param}_proxy")
    return found


class Redrive:
    """The command as a process of its own."""

    def __init__(self, box: LetterBox, target: str, *arguments: str) -> None:
        command = [str(installed_barnabas()), "dlq", "redrive", box.dlq, "--bootstrap", box.address, "--json"]
        self.errors = ""
        self.process = subprocess.Popen(
            [*command, "--to", target, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def end(self) -> tuple[int, int]:
        """The exit code, and the number of letters that it has re-driven, as far as it has told."""
        output, self.errors = self.process.communicate()
        rows = [json.loads(line) for line in output.splitlines()]
        return self.process.returncode, sum(row.get("letters", 0) for row in rows)


def new_letters(proxy: KillingProxy, count: int = LETTERS) -> tuple[LetterBox, str]:
    """Letters, and a topic for their records."""
    box = LetterBox(proxy.address)
    box.add(*numbered_records(count))
    return box, box.cluster.topic()


def finish(box: LetterBox, target: str) -> None:
    """Re-drive the letters that are left."""
    assert main(["dlq", "redrive", box.dlq, "--bootstrap", box.address, "--to", target]) == 0


def assert_each_once(box: LetterBox, target: str, count: int = LETTERS) -> None:
    assert box.read(target) == numbered_records(count)


@pytest.mark.clients
@pytest.mark.parametrize("moment", list(Moment), ids=lambda moment: moment.value)
def test_each_letter_is_redriven_once_after_a_kill_at_any_request(
    proxy: KillingProxy, moment: Moment
) -> None:
    for number in itertools.count(1):
        box, target = new_letters(proxy)
        redrive = Redrive(box, target, "--batch", str(BATCH))
        proxy.kill_at(number, moment, redrive.process)
        exit_code, _ = redrive.end()
        if exit_code != KILLED:
            assert (exit_code, number > REQUESTS_MIN) == (0, True), redrive.errors
            break
        finish(box, target)
        assert_each_once(box, target)


def test_two_runs_at_once_redrive_each_letter_once(proxy: KillingProxy) -> None:
    box, target = new_letters(proxy, SLOW_LETTERS)
    slow = Redrive(box, target, "--batch", "1", "--rate", "2")
    eventually(lambda: len(box.read(target)) > 2, awaited="the first run writes records")
    finish(box, target)
    exit_code, _ = slow.end()
    assert exit_code == 1
    assert slow.errors.startswith(f"barnabas: Another re-drive of {box.dlq} has begun")
    assert slow.errors.count("\n") == 1
    assert_each_once(box, target, SLOW_LETTERS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_after_its_transaction(proxy: KillingProxy, number: signal.Signals) -> None:
    box, target = new_letters(proxy, SLOW_LETTERS)
    slow = Redrive(box, target, "--batch", "2", "--rate", "4")
    eventually(lambda: len(box.read(target)) > 2, awaited="the command writes records")
    slow.process.send_signal(number)
    exit_code, count = slow.end()
    assert exit_code == 130
    assert len(box.read(target)) == count < SLOW_LETTERS
    finish(box, target)
    assert_each_once(box, target, SLOW_LETTERS)


def test_the_rate_limits_the_records_of_a_second(proxy: KillingProxy) -> None:
    box, target = new_letters(proxy, 30)
    assert Redrive(box, target, "--rate", "5").end() == (0, 30)
    first_ms, *_, last_ms = box.times_ms(target)
    assert last_ms - first_ms >= 3_500  # 5 s, but the producer finds the topic within the first of them
    assert_each_once(box, target, 30)
