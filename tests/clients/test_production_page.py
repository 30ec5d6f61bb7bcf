"""The service and the configuration of docs/production.md start a broker, and stop it in order."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import signal
import stat
import subprocess
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.clients.broker_process import reserved_port
from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT
from tests.clients.test_readme import blocks

PAGE = PROJECT / "docs" / "production.md"
TOKEN_FILE = "/etc/barnabas/http-token"


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
    assert TOKEN_FILE in text
    with_addresses = text.replace("10.0.0.5:9092", address).replace("10.0.0.5:8080", http_address)
    with_directory = with_addresses.replace("/var/lib/barnabas/data", str(data_directory))
    path.write_text(with_directory.replace(TOKEN_FILE, str(token_file(path.parent))))


def token_file(folder: Path) -> Path:
    """A file as the page's command makes it, but of the user of the test."""
    (command,) = re.findall(r"^    (python3 -c .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    file = folder / "http-token"
    own = command.replace("--owner barnabas ", "").replace(TOKEN_FILE, shlex.quote(str(file)))
    assert own.count("barnabas") == str(file).count("barnabas")
    subprocess.run(["sh", "-euc", own], check=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    return file


def status_of_a_new_topic(http_address: str, token: str) -> int:
    """The status of the answer to `POST /topics`."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    body = json.dumps({"name": "over-http", "partition_count": 1}).encode()
    request = Request(f"http://{http_address}/api/v1/topics", body, headers)
    try:
        with urlopen(request) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


@pytest.mark.barnabas
def test_the_service_starts_and_stops_in_order(barnabas_command: Path, tmp_path: Path) -> None:
    address = f"127.0.0.1:{reserved_port()}"
    configuration = tmp_path / "broker.properties"
    http_address = f"127.0.0.1:{reserved_port()}"
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
        with urlopen(f"http://{http_address}/readyz") as answer:
            assert answer.status == HTTPStatus.OK
        assert status_of_a_new_topic(http_address, "wrong") == HTTPStatus.UNAUTHORIZED
        token = (tmp_path / "http-token").read_text().strip()
        assert status_of_a_new_topic(http_address, token) == HTTPStatus.CREATED
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate()
        assert process.returncode == 0
        assert json.loads(log.splitlines()[-1])["event"] == "stopped"
    finally:
        process.kill()
        process.communicate()
