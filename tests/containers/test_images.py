"""The images of docker/compose.yml, built and run without a container engine (make images).

The services run in chroots, in a network of their own that has only the loopback interface.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.polling import eventually
from tests.containers import buildah
from tests.containers.buildah import PROJECT
from tests.containers.chroot_compose import NETWORK_VARIABLE, Project

pytestmark = pytest.mark.images

DOCKER = PROJECT / "docker"
COMPOSE_FILE = DOCKER / "compose.yml"
CHROOT_COMPOSE = f"{shlex.quote(sys.executable)} -m tests.containers.chroot_compose"
NAME = "images-test"

BARNABAS_BYTES_MAX: Final = 75_000_000
"""The image without its base image."""

RATE_WINDOW: Final = "30s"
"""In place of Grafana's `$__rate_interval`: some scrapes."""

EMPTY_AT_FIRST: Final = ("barnabas_dead_letters_held",)
"""Metrics that have a series only after a failure."""

Compose = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module", autouse=True)
def images() -> Project:
    """The project with its images, built once for all tests."""
    buildah.require_programs()
    project = Project(COMPOSE_FILE, NAME, {})
    project.build(project.services)
    return project


@contextmanager
def network() -> Generator[Mapping[str, str]]:
    """A network with the loopback interface alone; the environment of commands whose services run in it."""
    keeper = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert keeper.stdout is not None
    assert keeper.stdin is not None
    assert keeper.stdout.readline() == "up\n", "a new network needs root, and the command ip"
    try:
        yield {**os.environ, NETWORK_VARIABLE: f"/proc/{keeper.pid}/ns/net"}
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()


@contextmanager
def compose(environ: Mapping[str, str]) -> Generator[Compose]:
    """Runs commands of compose; everything is removed at the end."""
    command = [*shlex.split(CHROOT_COMPOSE), "--file", str(COMPOSE_FILE), "--project-name", NAME]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments], env=environ, capture_output=True, text=True, cwd=PROJECT, check=False
        )

    try:
        yield run
    finally:
        removed = run("down", "--volumes")
    assert removed.returncode == 0, removed.stderr


def test_no_order_is_lost_while_the_broker_is_restarted_and_killed() -> None:
    with network() as environ:
        done = subprocess.run(
            [DOCKER / "check.sh"],
            env={**environ, "COMPOSE": CHROOT_COMPOSE},
            capture_output=True,
            text=True,
            cwd=PROJECT,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1500 orders are shipped and acknowledged" in done.stdout


def test_the_check_fails_if_a_consumer_does_not_work() -> None:
    with network() as environ, compose(environ) as run:
        assert run("up", "--detach", "--wait", "broker", "consumer").returncode == 0
        assert run("run", "--rm", "check", "send", "1", "20").returncode == 0
        verified = run("run", "--rm", "check", "verify", "20")
    assert verified.returncode == 1
    assert "no order was shipped by: {'python'}" in verified.stdout


def test_prometheus_has_data_for_every_panel_of_the_dashboard() -> None:
    with network() as environ, compose(environ) as run:
        services = ("broker", "producer", "consumer", "python-consumer", "prometheus")
        started = run("up", "--detach", "--wait", *services)
        assert started.returncode == 0, started.stderr
        expected = [query for query in queries() if not any(name in query for name in EMPTY_AT_FIRST)]
        for query in expected:
            eventually(partial(has_data, run, query), awaited=f"{query} has data")
        wrong = [query for query in queries() if run(*promtool(query)).returncode != 0]
    assert wrong == []


def queries() -> list[str]:
    """Of all panels, with Grafana's variables replaced."""
    dashboard: Any = json.loads((DOCKER / "grafana" / "dashboards" / "barnabas.json").read_text("utf-8"))
    texts = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return [text.replace("$__rate_interval", RATE_WINDOW).replace("$group", ".*") for text in texts]


def promtool(query: str) -> Sequence[str]:
    return ("exec", "-T", "prometheus", "promtool", "query", "instant", "http://localhost:9090", query)


def has_data(run: Compose, query: str) -> bool:
    done = run(*promtool(query))
    return done.returncode == 0 and bool(done.stdout.strip())


def test_the_broker_runs_without_root_and_changes_nothing_in_its_root_file_system() -> None:
    with network() as environ, compose(environ) as run:
        assert run("up", "--detach", "--wait", "broker", "consumer").returncode == 0
        assert run("run", "--rm", "check", "send", "1", "10").returncode == 0
        user = run("exec", "-T", "broker", "id", "--user")
        can_write = run("exec", "-T", "broker", "find", "/", "-xdev", "-writable", "-newer", "/etc/barnabas",
                        "-type", "f", "-not", "-path", "/proc/*")  # fmt: skip
    assert user.stdout.strip() == buildah.image_config("barnabas")["User"] == "10001"
    written = [
        path for path in can_write.stdout.splitlines() if not path.startswith("/var/lib/barnabas/data/")
    ]
    assert written == []


def test_the_image_is_small() -> None:
    base, *own = buildah.image_bytes("barnabas")
    print(f"base image {base / 1e6:.0f} MB, Barnabas {sum(own) / 1e6:.0f} MB")
    assert sum(own) <= BARNABAS_BYTES_MAX


def test_the_image_has_the_native_and_the_compiled_modules(images: Project) -> None:
    with network() as environ, compose(environ) as run:
        assert run("up", "--detach", "--wait", "broker").returncode == 0
        program = "import barnabas.protocol.record_walk._native"
        found = run("exec", "-T", "broker", "python", "-c", program)
        version = run("exec", "-T", "broker", "barnabas", "--version")
    assert found.returncode == 0, found.stderr
    assert version.stdout.endswith("(compiled)\n"), version.stderr


def test_the_image_serves_the_console() -> None:
    with network() as environ, compose(environ) as run:
        assert run("up", "--detach", "--wait", "broker").returncode == 0
        read = "from urllib.request import urlopen; print(urlopen('http://localhost:8080{}').read().decode())"
        page = run("exec", "-T", "broker", "python", "-c", read.format("/console"))
        script = run("exec", "-T", "broker", "python", "-c", read.format("/console/console.js"))
    assert '<div id="console">' in page.stdout, page.stderr
    assert len(script.stdout) > 10_000, script.stderr


def test_a_foreign_listener_of_kafkas_image_is_explained_in_one_line(tmp_path: Path) -> None:
    container = buildah.buildah("from", "barnabas")
    try:
        command = buildah.run_command(
            container, ("--env", "KAFKA_ADVERTISED_LISTENERS=SASL_SSL://broker:9093"), ("barnabas", "serve")
        )
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        buildah.buildah("rm", container)
    assert refused.returncode != 0
    assert "SASL_SSL" in refused.stderr
    assert "Traceback" not in refused.stderr
