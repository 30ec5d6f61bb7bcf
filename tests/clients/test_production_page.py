"""The service and the configuration of docs/production.md start a broker, and stop it in order."""

from __future__ import annotations

import configparser
import json
import shlex
import signal
import subprocess
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.clients.broker_process import free_port
from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT
from tests.clients.test_readme import blocks

PAGE = PROJECT / "docs" / "production.md"


def service_command() -> list[str]:
    """The words of ExecStart."""
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names of systemd have capitals
    (text,) = blocks(PAGE, "ini")
    unit.read_string(text)
    return shlex.split(unit["Service"]["ExecStart"])


def write_configuration(path: Path, address: str, http_address: str, data_directory: Path) -> None:
    """That of the page, with other addresses and another directory."""
    (text,) = blocks(PAGE, "properties")
    assert "10.0.0.5:9092" in text
    assert "10.0.0.5:8080" in text
    assert "/var/lib/barnabas/data" in text
    with_addresses = text.replace("10.0.0.5:9092", address).replace("10.0.0.5:8080", http_address)
    path.write_text(with_addresses.replace("/var/lib/barnabas/data", str(data_directory)))


@pytest.mark.barnabas
def test_the_service_starts_and_stops_in_order(barnabas_command: Path, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    configuration = tmp_path / "broker.properties"
    http_address = f"127.0.0.1:{free_port()}"
    write_configuration(configuration, address, http_address, tmp_path / "data")
    replaced = {
        "/opt/barnabas/bin/barnabas": str(barnabas_command),
        "/etc/barnabas/broker.properties": str(configuration),
    }
    command = service_command()
    assert replaced.keys() <= set(command)
    process = subprocess.Popen(
        [replaced.get(word, word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert address in json.dumps(json.loads(process.stdout.readline()))
        Cluster(address).topic()
        assert (tmp_path / "data" / "meta.properties").is_file()
        with urlopen(f"http://{http_address}/readyz", timeout=20) as answer:
            assert answer.status == HTTPStatus.OK
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
        assert process.returncode == 0
        assert json.loads(log.splitlines()[-1])["event"] == "stopped"
    finally:
        process.kill()
        process.communicate()
