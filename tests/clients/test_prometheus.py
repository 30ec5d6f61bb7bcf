"""A Prometheus server scrapes a broker, and evaluates the example's alert rules; promtool checks both."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, reserved_port, started
from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT
from tests.clients.polling import eventually

pytestmark = [pytest.mark.barnabas, pytest.mark.clients]

EXAMPLE = PROJECT / "examples" / "prometheus"


def run(program: str, *arguments: str | Path, given: bytes = b"") -> str:
    """The output of a program of Debian's package `prometheus`."""
    found = shutil.which(program)
    assert found is not None, f"{program} is missing: apt-get install prometheus"
    done = subprocess.run([found, *arguments], input=given, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


class PrometheusServer:
    """A server that scrapes one target each second."""

    def __init__(self, directory: Path, target: str) -> None:
        self.address = f"127.0.0.1:{reserved_port()}"
        text = (EXAMPLE / "prometheus.yml").read_text(encoding="utf-8")
        text = text.replace("127.0.0.1:8080", target).replace("15s", "1s")
        directory.mkdir()
        (directory / "prometheus.yml").write_text(text, encoding="utf-8")
        shutil.copy(EXAMPLE / "alerts.yml", directory)
        command = shutil.which("prometheus")
        assert command is not None, "prometheus is missing: apt-get install prometheus"
        self._process = subprocess.Popen(
            [
                command,
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address={self.address}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, path: str, **query: str) -> Any:
        """The data of an answer; empty while the server is starting."""
        address = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(address) as answer:
                return json.load(answer)["data"]
        except (urllib.error.URLError, ConnectionError):
            return {}

    def value(self, query: str) -> float | None:
        """The value of a query with one result; None without one."""
        found = self.ask("query", query=query).get("result", [])
        return float(found[0]["value"][1]) if len(found) == 1 else None

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


@contextmanager
def scraping(directory: Path, target: str) -> Generator[PrometheusServer]:
    server = PrometheusServer(directory, target)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def broker_with_http(command: Path, directory: Path) -> Generator[tuple[Cluster, str]]:
    """The broker's cluster, and the address of its HTTP server."""
    port = reserved_port()
    settings = {"http.listener": str(port), **TEST_SETTINGS}
    with started(BrokerProcess(command, directory / "data", settings)) as broker:
        yield Cluster(broker.address), f"127.0.0.1:{port}"


def test_a_prometheus_server_reads_every_metric(barnabas_command: Path, tmp_path: Path) -> None:
    with (
        broker_with_http(barnabas_command, tmp_path) as (cluster, address),
        scraping(tmp_path / "prometheus", address) as server,
    ):
        topic = cluster.topic()
        cluster.produce(topic, ["a", "b", "c"])
        eventually(lambda: server.value('up{job="barnabas"}') == 1, awaited="a scrape succeeds")
        produced = 'kafka_network_requestmetrics_totaltimems_count{request="Produce"}'
        eventually(lambda: server.value(produced), awaited="a request is counted")
        [target] = server.ask("targets")["activeTargets"]
        assert target["lastError"] == ""
        types = {name: entries[0]["type"] for name, entries in server.ask("metadata").items()}
        assert types["kafka_network_requestmetrics_totaltimems"] == "histogram"
        assert types["barnabas_connections"] == "gauge"
        assert types["barnabas_connections_refused"] == "counter"
        rules = server.ask("rules")["groups"][0]["rules"]
        assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
        assert len(rules) == (EXAMPLE / "alerts.yml").read_text(encoding="utf-8").count("- alert:")


def test_promtool_accepts_the_metrics(barnabas_command: Path, tmp_path: Path) -> None:
    with broker_with_http(barnabas_command, tmp_path) as (cluster, address):
        cluster.produce(cluster.topic(), ["a"])
        with urllib.request.urlopen(f"http://{address}/metrics") as answer:
            text = answer.read()
    found = shutil.which("promtool")
    assert found is not None, "promtool is missing: apt-get install prometheus"
    checked = subprocess.run([found, "check", "metrics"], input=text, capture_output=True, check=False)
    # Exit code 3 means that only the naming rules complain: Kafka's names have abbreviated units.
    assert checked.returncode in (0, 3), checked.stderr.decode()


def test_each_alert_fires_in_its_example() -> None:
    run("promtool", "check", "config", EXAMPLE / "prometheus.yml")
    run("promtool", "test", "rules", EXAMPLE / "alerts_test.yml")
    alerts = (EXAMPLE / "alerts.yml").read_text(encoding="utf-8")
    examples = (EXAMPLE / "alerts_test.yml").read_text(encoding="utf-8")
    names = [line.partition("- alert: ")[2] for line in alerts.splitlines() if "- alert: " in line]
    assert names
    assert [name for name in names if f"alertname: {name}\n" not in examples] == []
