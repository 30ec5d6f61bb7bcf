"""A broker for tests: starts, restarts, ends, and shows its records and states."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from barnabas.cli.exit_codes import ExitCode
from barnabas.client import Producer
from barnabas.testing import Broker, BrokerDied, ControlError
from tests.clients.broker_process import reserved_port
from tests.clients.polling import eventually
from tests.testing.conftest import GROUP, TOPIC
from tests.testing.working import consumer_of, produce, take

TOKEN = "a-token-of-more-than-32-characters"
ENVIRONMENT = {**os.environ, "BARNABAS_TESTING_TOKEN": TOKEN}


def broker_command(directory: Path) -> list[str]:
    """`barnabas testing` with data in this directory."""
    command = [sys.executable, "-m", "barnabas", "testing", "--listen", "127.0.0.1:0"]
    return [*command, "--data-dir", str(directory / "data")]


async def test_records_have_dense_offsets_although_a_group_works(broker: Broker) -> None:
    await produce(broker, b"a", b"b")
    async with consumer_of(broker) as consumer:
        for _ in range(2):
            (await take(consumer)).accept()
        await produce(broker, b"c")
        (await take(consumer)).accept()
    assert [one.offset for one in broker.records(TOPIC)] == [0, 1, 2]


async def test_records_are_shown_with_all_their_parts(broker: Broker) -> None:
    broker.create_topic("full", partitions=2)
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send("full", b"v", key=b"k", headers=[("h", b"\xff")], partition=1)
    (record,) = broker.records("full")
    assert record[:3] == ("full", 1, 0)
    assert record[4:] == (b"k", b"v", (("h", b"\xff"),))


async def test_records_of_aborted_transactions_are_left_out(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers, transactional_id="t") as producer:
        await producer.init_transactions()
        for value, commits in ((b"aborted", False), (b"committed", True)):
            producer.begin_transaction()
            await producer.send(TOPIC, value)
            await (producer.commit_transaction() if commits else producer.abort_transaction())
    broker.assert_records(TOPIC, [b"committed"])


async def test_many_pages_of_records_are_read(broker: Broker) -> None:
    values = [bytes([number]) * 300_000 for number in range(8)]
    await produce(broker, *values)
    assert [one.value for one in broker.records(TOPIC)] == values


async def test_the_state_of_each_record_is_shown(broker: Broker) -> None:
    await produce(broker, b"a", b"b")
    async with consumer_of(broker) as consumer:
        await take(consumer)
        (await take(consumer)).accept()
        await consumer.commit()
        broker.assert_share_state(GROUP, {0: "acquired", 1: "acknowledged"}, topic=TOPIC)
        shown = broker.share_state(GROUP)[0]
        assert (shown.state, shown.deliveries, shown.offset, shown.wait) == ("acquired", 1, 0, None)
        assert shown.member
        assert 0 < (shown.lock_left_ms or 0) <= 30_000
    broker.assert_share_state(GROUP, {0: "available", 1: "acknowledged"}, topic=TOPIC)


async def test_an_assertion_shows_the_difference_of_states(broker: Broker) -> None:
    await produce(broker, b"a", b"b")
    async with consumer_of(broker) as consumer:
        await take(consumer)
        (await take(consumer)).accept()
        await consumer.commit()
        with pytest.raises(AssertionError) as raised:
            broker.assert_share_state(
                GROUP, {0: "available", 1: "acknowledged"}, topic=TOPIC, within_seconds=0
            )
    title, expected, found, same = str(raised.value).splitlines()
    assert title == "The states of orders-0 in group workers differ (- expected, + found):"
    assert expected == "- offset 0: available"
    assert re.fullmatch(r"\+ offset 0: acquired, 1 delivery, held by \S+ for \d+\.\d s more", found)
    assert same == "  offset 1: acknowledged, 1 delivery"


async def test_an_assertion_shows_the_difference_of_records(broker: Broker) -> None:
    await produce(broker, b"a", b"c")
    with pytest.raises(AssertionError) as raised:
        broker.assert_records(TOPIC, ["a", "b"], within_seconds=0)
    assert str(raised.value).splitlines() == [
        "The records of orders differ (- expected, + found):",
        "  b'a'",
        "- b'b'",
        "+ b'c'",
    ]
    broker.assert_records(TOPIC, [(None, "c"), (None, b"a")], in_any_order=True)


def test_an_assertion_waits_for_topics_and_groups_and_names_those_that_are_missing(broker: Broker) -> None:
    with pytest.raises(AssertionError, match="There is no topic later"):
        broker.assert_records("later", [], within_seconds=0.1)
    with pytest.raises(AssertionError, match="later"):
        broker.assert_share_state("later", {}, topic=TOPIC, within_seconds=0.1)


def test_an_unknown_state_is_refused(broker: Broker) -> None:
    with pytest.raises(ValueError, match="'accepted' is no state of a record"):
        broker.assert_share_state(GROUP, {0: "accepted"}, topic=TOPIC)


def test_unknown_topics_and_groups_are_errors(broker: Broker) -> None:
    with pytest.raises(ControlError, match="There is no topic nowhere"):
        broker.records("nowhere")
    with pytest.raises(ControlError) as raised:
        broker.share_state("nobody")
    assert raised.value.status == 404


def test_a_topic_and_a_setting_that_the_broker_refuses_are_errors(broker: Broker) -> None:
    with pytest.raises(ControlError, match="already exists"):
        broker.create_topic(TOPIC)
    with pytest.raises(ControlError, match="retention"):
        broker.create_topic("other", settings={"retention.ms": "long"})
    with pytest.raises(ControlError, match=r"share\.order"):
        broker.configure_group(GROUP, {"share.order": "random"})


async def test_a_reset_removes_topics_and_groups_and_disconnects_clients(broker: Broker) -> None:
    await produce(broker, b"a")
    consumer = consumer_of(broker)
    await consumer.start()
    await take(consumer)
    broker.reset()
    for ask in (lambda: broker.records(TOPIC), lambda: broker.share_state(GROUP)):
        with pytest.raises(ControlError):
            ask()
    broker.create_topic(TOPIC)
    await produce(broker, b"new")
    assert [(one.offset, one.value) for one in broker.records(TOPIC)] == [(0, b"new")]
    await consumer.close(timeout_ms=100)


async def test_a_group_of_the_same_name_begins_anew_after_a_reset(broker: Broker) -> None:
    for _ in range(3):
        await produce(broker, b"a")
        async with consumer_of(broker) as consumer:
            record = await take(consumer)
            assert (record.offset, record.delivery_count) == (0, 1)
            record.accept()
        broker.reset()
        broker.create_topic(TOPIC)
        broker.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})


async def test_an_open_transaction_does_not_survive_a_reset(broker: Broker) -> None:
    producer = Producer(broker.bootstrap_servers, transactional_id="t", close_timeout_ms=100)
    await producer.start()
    await producer.init_transactions()
    producer.begin_transaction()
    await producer.send_and_wait(TOPIC, b"open")
    broker.reset()
    await producer.close()
    broker.create_topic(TOPIC)
    async with Producer(broker.bootstrap_servers, transactional_id="t") as other:
        await other.init_transactions()
        other.begin_transaction()
        await other.send(TOPIC, b"new")
        await other.commit_transaction()
    broker.assert_records(TOPIC, [b"new"])


async def test_data_and_address_stay_over_a_crash(tmp_path: Path) -> None:
    with Broker(directory=tmp_path / "data") as broker:
        address = broker.bootstrap_servers
        broker.create_topic(TOPIC)
        await produce(broker, b"a")
        broker.restart(crash=True)
        assert broker.bootstrap_servers == address
        broker.assert_records(TOPIC, [b"a"])
    assert (tmp_path / "data").is_dir()


async def test_the_operations_are_coroutines_of_an_async_broker() -> None:
    async with Broker() as broker:
        await broker.create_topic(TOPIC)
        before = await broker.clock.now()
        await broker.clock.advance(60)
        assert (await broker.clock.now() - before).total_seconds() >= 60
        fault = await broker.faults.refuse("Metadata", times=1)
        assert fault.hits == 0
        await broker.faults.clear()
        await broker.assert_records(TOPIC, [])
        await broker.reset()
        assert broker.log == ""


def test_a_wrong_setting_is_told_at_the_start() -> None:
    with pytest.raises(BrokerDied, match=r"There is no setting share\.stat\.store"):
        Broker(settings={"share.stat.store": "log"}).start()


def test_a_broker_that_does_not_run_says_so() -> None:
    with pytest.raises(BrokerDied, match="Use it in a with block"):
        _ = Broker().bootstrap_servers


@pytest.mark.parametrize("source", ["/dev/null", __file__])
def test_an_input_that_cannot_end_is_refused(source: str, tmp_path: Path) -> None:
    with Path(source).open("rb") as given:
        ended = subprocess.run(
            broker_command(tmp_path),
            check=False,
            stdin=given,
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
        )
    assert ended.returncode == ExitCode.USAGE
    assert "The standard input is closed, a file, or /dev/null" in ended.stderr


@contextmanager
def controls_at(directory: Path, address: str) -> Generator[str]:
    """The URL of the controls that a broker states."""
    command = [*broker_command(directory), "--control", address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["control"]
        process.stdin.close()
        assert process.wait() == 0


def assert_answers(control: str) -> None:
    asked = Request(f"{control}/testing/v1/clock", headers={"Authorization": f"Bearer {TOKEN}"})
    with urlopen(asked) as answer:
        assert json.load(answer)["ahead_ms"] == 0


def test_the_controls_listen_on_the_given_address(tmp_path: Path) -> None:
    port = reserved_port()
    with controls_at(tmp_path, f"0.0.0.0:{port}") as control:
        assert control == f"http://0.0.0.0:{port}"
        assert_answers(f"http://127.0.0.1:{port}")


def test_a_free_port_of_the_controls_is_the_same_on_all_interfaces(tmp_path: Path) -> None:
    with controls_at(tmp_path, ":0") as control:
        assert_answers(control)
        if has_ipv6():
            assert_answers(control.replace("127.0.0.1", "[::1]"))


def has_ipv6() -> bool:
    """Whether this machine has the loopback address of IPv6."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_a_port_of_the_controls_in_use_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = subprocess.run(
            [*broker_command(tmp_path), "--control", address],
            check=False,
            stdin=subprocess.PIPE,
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
        )
    assert ended.returncode == ExitCode.FAILED
    assert f"{address} cannot be listened on: address already in use" in ended.stderr
    assert "Name another address with --control" in ended.stderr


def test_a_wrong_address_of_the_controls_is_told(tmp_path: Path) -> None:
    command = [*broker_command(tmp_path), "--control", "nowhere"]
    ended = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=ENVIRONMENT
    )
    assert (ended.returncode, ended.stderr[:21]) == (ExitCode.USAGE, "barnabas: --control: ")


def test_a_broker_ends_with_the_process_of_its_tests() -> None:
    program = (
        "from barnabas.testing import Broker; b = Broker(); b.start(); print(b.pid, flush=True); input()"
    )
    tests = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert tests.stdout is not None
    pid = int(tests.stdout.readline())
    tests.send_signal(signal.SIGKILL)
    tests.communicate()
    eventually(lambda: not _runs(pid), awaited="the broker has ended")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
