"""The commands of `docker compose` that docker/check.sh and the tests use, without a container engine.

Each service runs in a chroot of its image, by buildah. Its network is the one that `CHROOT_NETWORK` names, or
else that of this process: a service finds every other one at 127.0.0.1, and published ports are not mapped.
Volumes are directories. Capabilities are dropped as the file says; a read-only root file system, limits and
restarts of a failed service are not provided.

    python -m tests.containers.chroot_compose --file FILE --project-name NAME COMMAND ...
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.containers import buildah
from tests.containers.compose_file import Service, read_services

NETWORK_VARIABLE: Final = "CHROOT_NETWORK"
_PAUSE_SECONDS: Final = 0.2
_VOLUME_MODE: Final = 0o777
"""The user of the image may write, as in a volume that an engine has created."""


class Project:
    """The services of a file, and their processes; the state is in a directory, because each command is a
    process of its own.
    """

    def __init__(self, file: Path, name: str, environ: Mapping[str, str]) -> None:
        self.services = read_services(file.read_text(encoding="utf-8"), file.resolve().parent, environ)
        self._directory = buildah.STORE / name
        network = environ.get(NETWORK_VARIABLE)
        self._enter_network = () if network is None else ("nsenter", f"--net={network}")

    def build(self, names: Iterable[str]) -> None:
        """Build the images and stand-ins of services; Grafana has none."""
        for service in self._named(names):
            if service.context is not None and service.dockerfile is not None:
                buildah.build_image(service.image, service.context, service.dockerfile)
            elif service.image in buildah.BASES:
                buildah.stand_in(service.image)

    def up(self, names: Sequence[str]) -> None:
        """Start the services that do not run, and wait until they run or are healthy."""
        for service in self._named(names):
            if self._process(service) is None:
                self._wait_until_healthy(service.healthy_first)
                self._start(service)
        for service in self._named(names):
            if buildah.image_config(_local_image(service)).get("Healthcheck"):
                self._wait_until_healthy([service.name])

    def run(self, name: str, arguments: Sequence[str]) -> int:
        """Run a service in the foreground, and remove it; its exit code."""
        service = self.services[name]
        self._wait_until_healthy(service.healthy_first)
        container = self._create(service)
        try:
            return subprocess.run(self._command(service, container, arguments), check=False).returncode
        finally:
            buildah.buildah("rm", container)

    def exec(self, name: str, program: Sequence[str]) -> int:
        """Run a program in the container of a service that runs; its exit code."""
        return self._beside(self.services[name], program)

    def kill(self, name: str, signal_name: str) -> None:
        """Send a signal to the main process of a service, and wait for its end."""
        process = self._process(self.services[name])
        if process is None:
            raise SystemExit(f"{name} does not run")
        os.kill(_innermost(process), signal.Signals[signal_name])
        _wait_for_end(process)

    def restart(self, name: str) -> None:
        self.kill(name, "SIGTERM")
        self._start(self.services[name])

    def logs(self, lines: int) -> None:
        for path in sorted(self._directory.glob("*.log")):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]:
                print(f"{path.stem} | {line}")

    def down(self) -> None:
        """End all services, and remove them with their volumes."""
        for service in self.services.values():
            if self._process(service) is not None:
                self.kill(service.name, "SIGTERM")
            if (container := self._container_file(service)).exists():
                buildah.buildah("rm", container.read_text())
        shutil.rmtree(self._directory, ignore_errors=True)

    def _named(self, names: Iterable[str]) -> list[Service]:
        return [self.services[name] for name in names]

    def _start(self, service: Service) -> None:
        file = self._container_file(service)
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(self._create(service))
        with file.with_suffix(".log").open("ab") as log:
            process = subprocess.Popen(
                self._command(service, file.read_text(), ()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        file.with_suffix(".pid").write_text(str(process.pid))

    def _create(self, service: Service) -> str:
        """A working container of the service's image, in which the names of all services are known."""
        hosts = [option for name in self.services for option in ("--add-host", f"{name}:127.0.0.1")]
        return buildah.buildah("from", *hosts, _local_image(service))

    def _command(self, service: Service, container: str, arguments: Sequence[str]) -> list[str]:
        config = buildah.image_config(_local_image(service))
        entrypoint = service.entrypoint or config["Entrypoint"]
        own = service.arguments or (config.get("Cmd") if service.entrypoint is None else None) or ()
        return self._in_container(service, container, (*entrypoint, *(arguments or own)))

    def _in_container(self, service: Service, container: str, program: Sequence[str]) -> list[str]:
        return [*self._enter_network, *buildah.run_command(container, self._options(service), program)]

    def _options(self, service: Service) -> Iterator[str]:
        for name, value in service.environment.items():
            yield from ("--env", f"{name}={value}")
        for capability in service.dropped_capabilities:
            yield from ("--cap-drop", capability)
        for bind in service.binds:
            yield from ("--volume", bind)
        for name, path in service.volumes.items():
            directory = self._directory / "volumes" / name
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(_VOLUME_MODE)
            yield from ("--volume", f"{directory}:{path}")

    def _wait_until_healthy(self, names: Sequence[str]) -> None:
        for service in self._named(names):
            while not self._is_healthy(service):
                time.sleep(_PAUSE_SECONDS)

    def _is_healthy(self, service: Service) -> bool:
        if self._process(service) is None:
            return False
        kind, *check = buildah.image_config(_local_image(service))["Healthcheck"]["Test"]
        assert kind == "CMD", "the health check is a command without a shell"
        return self._beside(service, check, subprocess.DEVNULL) == 0

    def _beside(self, service: Service, program: Sequence[str], output: int | None = None) -> int:
        """Run a program in the container of a service that runs; its exit code."""
        command = self._in_container(service, self._container_file(service).read_text(), program)
        return subprocess.run(command, stdout=output, stderr=output, check=False).returncode

    def _container_file(self, service: Service) -> Path:
        return self._directory / f"{service.name}.container"

    def _process(self, service: Service) -> int | None:
        """The process of buildah that runs the service; None if it has ended."""
        file = self._container_file(service).with_suffix(".pid")
        if not file.exists():
            return None
        process = int(file.read_text())
        return process if _runs(process) else None


def _local_image(service: Service) -> str:
    """An image that the project does not build has a stand-in."""
    return buildah.stand_in(service.image) if service.image in buildah.BASES else service.image


def _runs(process: int) -> bool:
    """False also for a process that has ended, and whose parent has not noticed yet."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _innermost(process: int) -> int:
    """The last of the processes that started each other: buildah starts itself again in the chroot."""
    threads = Path(f"/proc/{process}/task").glob("*/children")
    children = [child for thread in threads for child in thread.read_text().split()]
    return _innermost(int(children[0])) if children else process


def _wait_for_end(process: int) -> None:
    while _runs(process):
        time.sleep(_PAUSE_SECONDS)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chroot_compose")
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--project-name", required=True)
    parser.add_argument("--profile")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build").add_argument("services", nargs="+")
    up = commands.add_parser("up")
    up.add_argument("--detach", action="store_true", required=True)
    up.add_argument("--wait", action="store_true", required=True)
    up.add_argument("services", nargs="+")
    run = commands.add_parser("run")
    run.add_argument("--rm", action="store_true", required=True)
    run.add_argument("service")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    execute = commands.add_parser("exec")
    execute.add_argument("--no-tty", "-T", action="store_true", required=True)
    execute.add_argument("service")
    execute.add_argument("program", nargs=argparse.REMAINDER)
    commands.add_parser("restart").add_argument("service")
    kill = commands.add_parser("kill")
    kill.add_argument("--signal", default="SIGKILL")
    kill.add_argument("service")
    logs = commands.add_parser("logs")
    logs.add_argument("--no-color", action="store_true")
    logs.add_argument("--tail", type=int, required=True)
    down = commands.add_parser("down")
    down.add_argument("--volumes", action="store_true", required=True)
    down.add_argument("--timeout", type=int)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    project = Project(options.file, options.project_name, os.environ)
    match options.command:
        case "build":
            project.build(options.services)
        case "up":
            project.up(options.services)
        case "run":
            return project.run(options.service, options.arguments)
        case "exec":
            return project.exec(options.service, options.program)
        case "restart":
            project.restart(options.service)
        case "kill":
            project.kill(options.service, options.signal)
        case "logs":
            project.logs(options.tail)
        case "down":
            project.down()
        case other:
            raise AssertionError(f"the parser knows no command {other}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
