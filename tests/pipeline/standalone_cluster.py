"""A Spark cluster on this machine: a standalone master and workers, each a process with its own directory.

They come out of PySpark's own package. `submit` is spark-submit in client mode: the driver is a process here,
executors are the workers' children. Heaps are as small as they may be. Every process chooses its ports
itself, so that no other program can take them first, and its output tells them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyspark

from tests.clients.polling import eventually

HOST: Final = "127.0.0.1"
REPORT: Final = "REPORT "
"""The beginning of the line in a job's output that has its result, in JSON."""

# Each ends with its line, so that a line that is not complete yet does not match.
_MASTER_ADDRESS: Final = re.compile(r"Starting Spark master at (\S+)\n")
_WORKER_IS_KNOWN: Final = re.compile(r"Successfully registered with master (\S+)\n")
_BIN: Final = Path(pyspark.__file__).parent / "bin"
_UNWANTED: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "SPARK_HOME")


class StandaloneCluster:
    """A master and its workers, each with one core. `start` once, `stop` once."""

    def __init__(self, directory: Path, worker_count: int) -> None:
        self._directory = directory
        self._worker_count = worker_count
        self._url = ""
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Return once every worker is known to the master."""
        at = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        self._launch("master", "org.apache.spark.deploy.master.Master", at)
        self._url = self._said("master", _MASTER_ADDRESS)
        workers = [f"worker-{number}" for number in range(self._worker_count)]
        for name in workers:
            own = ["--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", "1g"]
            own += ["--work-dir", str(self._directory / name / "work"), self._url]
            self._launch(name, "org.apache.spark.deploy.worker.Worker", own)
        for name in workers:
            self._said(name, _WORKER_IS_KNOWN)

    def stop(self) -> None:
        """End the workers and the master; executors end with their workers."""
        for process in reversed(self._processes):
            process.kill()
        for process in self._processes:
            process.wait()

    def submit(
        self,
        job: Path,
        arguments: Sequence[str],
        *,
        python: str,
        directory: Path,
        options: Sequence[str],
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:
        """Runs a job to its end, in `directory`; returns its report.

        `python` runs on executors, and on the driver beside the job's own; `environment` is the driver's.
        """
        command = [str(_BIN / "spark-submit"), "--master", self._url, *options]
        settings = {
            "spark.log.level": "WARN",
            "spark.driver.host": HOST,
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": str(directory / "local"),
            "spark.pyspark.python": python,
            # Tasks are so short that one executor could do them all before the other is there.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.locality.wait": "0",
        }
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        command += [str(job), *arguments]
        output, errors = directory / "stdout", directory / "stderr"
        with output.open("wb") as out, errors.open("wb") as err:
            driver = subprocess.Popen(
                command, cwd=directory, env={**_environment(), **environment}, stdout=out, stderr=err
            )
        try:
            code = driver.wait()
        finally:
            driver.kill()
            driver.wait()
        reports = [line for line in output.read_text().splitlines() if line.startswith(REPORT)]
        assert code == 0, f"spark-submit failed, see {errors}:\n{errors.read_text()[-6000:]}"
        assert reports, f"the job reported nothing, see {output}"
        return json.loads(reports[-1].removeprefix(REPORT))

    def _launch(self, name: str, main_class: str, arguments: Sequence[str]) -> None:
        directory = self._directory / name
        directory.mkdir(parents=True)
        with (directory / "output").open("wb") as output:
            process = subprocess.Popen(
                [str(_BIN / "spark-class"), main_class, *arguments],
                cwd=directory,
                env={**_environment(), "SPARK_DAEMON_MEMORY": "256m", "TMPDIR": str(directory)},
                stdout=output,
                stderr=output,
            )
        self._processes.append(process)

    def _said(self, name: str, wanted: re.Pattern[str]) -> str:
        """The text that the process logs and the pattern captures; waits for it."""
        output = self._directory / name / "output"

        def found() -> re.Match[str] | None:
            assert all(process.poll() is None for process in self._processes), f"see {self._directory}"
            return wanted.search(output.read_text())

        match = eventually(found, awaited=f"{wanted.pattern} in {output}")
        assert match is not None
        return match.group(1)


def _environment() -> Mapping[str, str]:
    """The environment of a shell outside of this project, so that the tests add nothing to it."""
    environment = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    environment.pop("PYSPARK_PYTHON", None)
    return {**environment, "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": HOST}
