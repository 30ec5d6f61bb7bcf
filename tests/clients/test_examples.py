"""The programs in `examples`, run as they are against a real broker, with injected failures."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from barnabas.client import ShareBrowser, ShareGroupAdmin
from barnabas.protocol.api import ApiKey
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, reserved_port, started
from tests.clients.cluster import Cluster, unique
from tests.clients.confluent_polling import poll_some, share_consumer
from tests.clients.java_build import PROJECT
from tests.clients.killing_proxy import KillingProxy, Moment, proxied_barnabas
from tests.clients.polling import SECONDS_MAX, eventually

EXAMPLES = PROJECT / "examples"
LOCK_MS = 6_000
"""The sink renews a lock while at least a third of it is left: two seconds, also for a busy machine."""

pytestmark = pytest.mark.barnabas


def order(number: int) -> str:
    return json.dumps({"id": f"order-{number}", "amount": number})


class Sink:
    """The sink as a process, with its database and its log."""

    def __init__(self, bootstrap: str, group: str, topic: str, directory: Path) -> None:
        self.database = directory / "orders.db"
        self._log = directory / "log"
        self._arguments = ["--bootstrap", bootstrap, "--group", group, "--topic", topic]

    @contextmanager
    def running(self, *, busy_seconds: float = SECONDS_MAX) -> Generator[subprocess.Popen[bytes]]:
        """Stops it with SIGTERM at the end, which must be orderly unless the test has killed it."""
        command = [sys.executable, str(EXAMPLES / "sqlite_sink.py"), *self._arguments]
        options = ["--database", str(self.database), "--busy-seconds", str(busy_seconds)]
        before = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            process = subprocess.Popen([*command, *options], stderr=log)
        try:
            yield process
            if process.poll() is None:
                eventually(lambda: "assigns" in self.log[before:], awaited="the sink is in the group")
                process.terminate()
                assert process.wait() == 0, self.log
        finally:
            process.kill()
            process.wait()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def rows(self) -> dict[str, int]:
        """The ids in the table, and the number of deliveries until their row was written."""
        with closing(sqlite3.connect(self.database)) as database:
            try:
                rows = database.execute("select id, delivery_count from orders").fetchall()
            except sqlite3.OperationalError:
                return {}  # the table is not there yet, or the database is locked
        found = dict(rows)
        assert len(found) == len(rows), "an order has two rows"
        return found

    def wait_for(self, count: int) -> dict[str, int]:
        eventually(lambda: len(self.rows()) >= count, awaited=f"{count} rows")
        return self.rows()


@pytest.fixture(scope="module")
def proxy(barnabas_command: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillingProxy]:
    """Kills the sink at requests that carry acknowledgements."""
    requests = {ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE}
    directory = tmp_path_factory.mktemp("broker") / "data"
    with proxied_barnabas(barnabas_command, directory, "barnabas", requests) as proxy:
        yield proxy


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return cluster.topic()


@pytest.fixture
def group(cluster: Cluster) -> str:
    return cluster.group(record_lock_duration_ms=LOCK_MS)


@pytest.fixture
def sink(bootstrap: str, group: str, topic: str, tmp_path: Path) -> Sink:
    return Sink(bootstrap, group, topic, tmp_path)


@contextmanager
def locked(database: Path) -> Generator[None]:
    """Holds the lock of the database, so that no other process can write."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("begin exclusive")
        yield
        other.execute("rollback")


def lag(bootstrap: str, group: str) -> int | None:
    """The lag of the group; None if it has not begun to read."""

    async def ask() -> int | None:
        async with ShareGroupAdmin(bootstrap, group=group) as admin:
            positions = (await admin.positions()).values()
        return sum(one.lag or 0 for one in positions) if positions else None

    return asyncio.run(ask())


def held_ms(bootstrap: str, group: str, topic: str) -> int:
    """For how long a member has held the first record of partition 0; 0 while none does."""

    async def ask() -> int:
        async with ShareBrowser(bootstrap, group=group) as browser:
            ranges = [found async for found in browser.ranges(topic, 0)]
        holder = ranges[0].holder if ranges else None
        acquired_ms = holder and holder.acquired_ms
        return round(time.time() * 1000) - acquired_ms if acquired_ms else 0

    return asyncio.run(ask())


class TestSink:
    def test_orders_are_rows_and_other_records_are_rejected(
        self, bootstrap: str, cluster: Cluster, topic: str, group: str, sink: Sink
    ) -> None:
        poison = ["{", "[]", '{"id": 1}', '{"id": 1, "amount": -1}', "[" * 99_999]
        poison += ['{"id": "\\ud800", "amount": 1}', f'{{"id": 1, "amount": {10**400}}}']
        cluster.produce(topic, [order(1), *poison, order(2)])
        with sink.running():
            assert sink.wait_for(2) == {"order-1": 1, "order-2": 1}
            eventually(lambda: lag(bootstrap, group) == 0, awaited="all records are done")
        assert sink.log.count("is rejected") == len(poison)

    def test_a_busy_database_releases_the_records_until_it_is_free(
        self, bootstrap: str, cluster: Cluster, topic: str, group: str, sink: Sink
    ) -> None:
        with sink.running(busy_seconds=0.01), locked(sink.database):
            cluster.produce(topic, [order(number) for number in range(3)])
            eventually(lambda: "3 records are released" in sink.log, awaited="the sink releases the records")
        with sink.running():
            counts = sink.wait_for(3)
            eventually(lambda: lag(bootstrap, group) == 0, awaited="all records are done")
        assert set(counts) == {"order-0", "order-1", "order-2"}
        assert min(counts.values()) > 1

    def test_a_write_may_take_longer_than_the_lock_of_a_record(
        self, bootstrap: str, cluster: Cluster, topic: str, group: str, sink: Sink
    ) -> None:
        with sink.running():
            with locked(sink.database):
                cluster.produce(topic, [order(1)])
                eventually(lambda: lag(bootstrap, group) == 1, awaited="the group has the record")
                eventually(lambda: held_ms(bootstrap, group, topic) > 1.2 * LOCK_MS, awaited="a lock is over")
            assert sink.wait_for(1) == {"order-1": 1}
            eventually(lambda: lag(bootstrap, group) == 0, awaited="the record is done")

    @pytest.mark.parametrize("number", [1, 3, 5])
    def test_after_a_kill_between_row_and_acknowledgement_each_order_is_one_row(
        self, proxy: KillingProxy, tmp_path: Path, number: int
    ) -> None:
        cluster = Cluster(proxy.address)
        topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=LOCK_MS)
        sink = Sink(proxy.address, group, topic, tmp_path)
        cluster.produce(topic, [order(number) for number in range(20)])
        with sink.running() as process:
            proxy.kill_at(number, Moment.BEFORE, process)
            assert process.wait() == -signal.SIGKILL
        with sink.running():
            eventually(lambda: lag(proxy.address, group) == 0, awaited="all records are done")
        assert set(sink.rows()) == {f"order-{number}" for number in range(20)}


class TestBilling:
    def test_a_worker_accepts_its_order_and_leaves_the_group_on_sigterm(
        self, bootstrap: str, cluster: Cluster, topic: str, group: str, tmp_path: Path
    ) -> None:
        cluster.produce(topic, ['{"id": "a", "cents": 999}'])
        options = [
            "--bootstrap",
            bootstrap,
            "--orders",
            topic,
            "--invoices",
            cluster.topic(),
            "--group",
            group,
        ]
        command = [sys.executable, str(EXAMPLES / "orders" / "python" / "billing.py"), *options]
        output = tmp_path / "output"
        with output.open("wb") as file:
            worker = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            eventually(lambda: "charged" in output.read_text(), awaited="the order is charged")
            worker.terminate()
            assert worker.wait() == 0
        finally:
            worker.kill()
            worker.wait()
        assert output.read_text() == "charged 9.99 for order a\n"
        assert lag(bootstrap, group) == 0


class LagServer:
    """The program behind KEDA's scaler, and its HTTP interface."""

    def __init__(self, bootstrap: str) -> None:
        command = [sys.executable, str(EXAMPLES / "keda" / "share_lag.py"), "--bootstrap", bootstrap]
        self._process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.fullmatch(r"serves (http://127\.0\.0\.1:\d+)/groups/GROUP\n", line)
        assert found is not None, line
        self._address = found[1]

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        """The status and the body."""
        try:
            with urllib.request.urlopen(f"{self._address}{path}") as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()


@contextmanager
def lag_server(bootstrap: str) -> Generator[LagServer]:
    server = LagServer(bootstrap)
    try:
        yield server
    finally:
        server.stop()


class TestKeda:
    def test_the_lag_of_a_group_is_that_of_the_brokers_answer(
        self, bootstrap: str, cluster: Cluster, group: str
    ) -> None:
        topic = cluster.topic(2)
        with lag_server(bootstrap) as server, closing(share_consumer(bootstrap, group, topic)) as consumer:
            cluster.produce(topic, [order(1)])
            (message,) = poll_some(consumer)
            status, body = server.get(f"/groups/{group}")
            assert (status, body["group"], body["lag"]) == (200, group, 1)
            cluster.produce(topic, [order(number) for number in range(4)])
            consumer.acknowledge(message)
            consumer.commit_sync(SECONDS_MAX)
            eventually(lambda: server.get(f"/groups/{group}")[1]["lag"] == 4, awaited="the lag is 4")
            places = [
                (one["topic"], one["partition"]) for one in server.get(f"/groups/{group}")[1]["partitions"]
            ]
            assert places == [(topic, 0), (topic, 1)]

    def test_a_group_that_has_not_begun_is_an_error_that_keda_sees(self, bootstrap: str) -> None:
        name = unique("group")
        with lag_server(bootstrap) as server:
            assert server.get(f"/groups/{name}") == (
                404,
                {"error": f"The share group {name} has not begun to read a partition."},
            )
            assert server.get("/")[0] == server.get("/groups/")[0] == 404

    def test_a_broker_that_does_not_answer_is_an_error_that_keda_sees(self) -> None:
        with lag_server(f"127.0.0.1:{reserved_port()}") as server:
            status, body = server.get("/groups/workers")
        assert status == 503
        assert "cannot be reached" in body["error"]

    def test_the_scaled_object_reads_the_programs_answer(self) -> None:
        text = (EXAMPLES / "keda" / "scaled-object.yaml").read_text(encoding="utf-8")
        settings = dict(re.findall(r"^ +(url|valueLocation|type): (\S+)$", text, re.MULTILINE))
        assert settings["url"].endswith("/groups/workers")
        assert settings["valueLocation"] == "lag"

    def test_the_scaled_object_of_http_reads_the_brokers_own_answer(
        self, barnabas_command: Path, tmp_path: Path
    ) -> None:
        text = (EXAMPLES / "keda" / "scaled-object-http.yaml").read_text(encoding="utf-8")
        settings = dict(re.findall(r"^ +(url|valueLocation): (\S+)$", text, re.MULTILINE))
        of_broker = dict(re.findall(r"^#   (http\.[a-z.]+)=(\S+)$", text, re.MULTILINE))
        http_port = reserved_port()
        served = {**of_broker, "http.listener": f":{http_port}", **TEST_SETTINGS}
        with started(BrokerProcess(barnabas_command, tmp_path / "data", served)) as broker:
            cluster = Cluster(broker.address)
            topic = cluster.topic()
            cluster.set_group("workers", {"share.auto.offset.reset": "earliest"})
            cluster.produce(topic, [order(number) for number in range(3)])
            with closing(share_consumer(broker.address, "workers", topic)) as consumer:
                message = poll_some(consumer)[0]
                consumer.acknowledge(message)
                consumer.commit_sync(SECONDS_MAX)
            host = urlsplit(str(settings["url"])).netloc
            assert host == of_broker["http.allowed.hosts"] + of_broker["http.listener"]
            address = settings["url"].replace(host, f"127.0.0.1:{http_port}")
            request = urllib.request.Request(address, headers={"Host": host})
            with urllib.request.urlopen(request) as answer:
                assert json.load(answer)[settings["valueLocation"]] == 2
