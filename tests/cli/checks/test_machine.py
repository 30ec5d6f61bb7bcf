"""The checks of port, memory, files and clock."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from barnabas.cli.checks.finding import Result
from barnabas.cli.checks.machine import check_clock, check_memory, check_open_files, check_port
from tests.clients.broker_process import reserved_port


def test_a_free_port_is_well() -> None:
    assert check_port("127.0.0.1", reserved_port()).result is Result.OK


def test_a_port_in_use_is_a_failure_that_says_how_to_find_the_program() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        finding = check_port("127.0.0.1", port)
    assert finding.result is Result.FAILURE
    assert f"sport = :{port}" in (finding.remedy or "")


def test_an_address_of_another_machine_is_a_failure() -> None:
    assert check_port("192.0.2.1", 9092).result is Result.FAILURE
    assert check_port("no-such-host.invalid", 9092).result is Result.FAILURE


@pytest.mark.parametrize(
    ("available_kib", "limit", "used", "mib", "result"),
    [
        (4 << 20, None, None, 4096, Result.OK),
        (4 << 20, "max", 0, 4096, Result.OK),
        (100 << 10, None, None, 100, Result.WARNING),
        (4 << 20, str(600 << 20), 500 << 20, 100, Result.WARNING),
        (4 << 20, str(1 << 20), 2 << 20, 0, Result.WARNING),
    ],
)
def test_the_limit_of_a_container_counts_if_it_is_less(
    tmp_path: Path, available_kib: int, limit: str | None, used: int | None, mib: int, result: Result
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable: {available_kib} kB\n")
    if limit is not None:
        group = tmp_path / "sys/fs/cgroup"
        group.mkdir(parents=True)
        (group / "memory.max").write_text(f"{limit}\n")
        (group / "memory.current").write_text(f"{used}\n")
    finding = check_memory(tmp_path)
    assert (finding.result, finding.detail) == (result, f"{mib:,} MiB are available")


def test_an_unknown_system_is_no_failure(tmp_path: Path) -> None:
    assert check_memory(tmp_path).result is Result.OK


def test_the_clock_and_the_files_of_this_machine_have_a_finding() -> None:
    for finding in (check_clock(), check_open_files()):
        assert finding.result is not Result.FAILURE
        assert (finding.remedy is None) == (finding.result is Result.OK)
