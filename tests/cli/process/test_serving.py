"""`barnabas serve` as a process of its own: the last line of its log, and the modules that it loads."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

LIBRARIES = {"aiofiles", "cramjam", "crc32c", "kio", "structlog", "typing_extensions", "uvloop"}

NOT_FROM_PYTHON = ("decimal", "difflib", "email", "importlib.metadata", "sqlite3", "tomllib", "zipfile")
"""Modules of Python that take much memory, and that only a few brokers need."""

NOT_OURS = (
    "barnabas.broker.http.application",
    "barnabas.broker.testing",
    "barnabas.broker.tracing.request_spans",
    "barnabas.cli.kafka_import",
    "barnabas.cli.log_tool",
    "barnabas.client",
    "barnabas.coordinator.assignor.load_balance",
    "barnabas.pipeline.ingest",
    "barnabas.protocol.client",
    "barnabas.share.dead_letters.letter_work",
    "barnabas.share.log_store.history_search",
    "barnabas.testing",
)
"""Modules of features that an ordinary broker does not use."""

OUR_MODULES_MAX = 620
"""On average a module takes 20 KB of memory and 0.3 ms of a start."""

_TELL_MODULES = """
import sys
before = set(sys.modules)
from barnabas.__main__ import main
main()
print(*(name for name in set(sys.modules) - before), file=sys.stderr)
"""


def test_the_last_line_of_the_log_says_that_the_broker_has_stopped(tmp_path: Path) -> None:
    line = json.loads(log_of_a_broker(tmp_path).splitlines()[-1])
    assert (line["level"], line["event"]) == ("info", "stopped")
    assert line["data"] == str(tmp_path / "data")


def test_an_ordinary_start_loads_few_libraries(tmp_path: Path) -> None:
    loaded = modules_of_a_start(tmp_path)
    packages = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names - {"barnabas"}
    of_compiled_modules = {name for name in packages if "cython" in name}
    assert packages - of_compiled_modules <= LIBRARIES
    assert {name for name in loaded if is_one_of(name, NOT_FROM_PYTHON)} == set()


def test_an_ordinary_start_loads_no_module_of_a_feature_that_is_not_in_use(tmp_path: Path) -> None:
    loaded = {name for name in modules_of_a_start(tmp_path) if is_one_of(name, ("barnabas",))}
    assert "barnabas.cli.process.serving" in loaded
    assert {name for name in loaded if is_one_of(name, NOT_OURS)} == set()
    assert len(loaded) <= OUR_MODULES_MAX, "load modules of a new feature at its first use"


def is_one_of(name: str, modules: Collection[str]) -> bool:
    """Whether the module `name` is one of `modules` or in one of them."""
    return any(f"{name}.".startswith(f"{module}.") for module in modules)


def modules_of_a_start(folder: Path) -> set[str]:
    """The modules that a broker on a new directory loads until it has served and ended."""
    return set(log_of_a_broker(folder, "-c", _TELL_MODULES).splitlines()[-1].split())


def log_of_a_broker(folder: Path, *program: str) -> str:
    """The standard error of a broker on `folder/data` that ends at SIGTERM as soon as it serves."""
    options = ["--listen", "127.0.0.1:0", "--data-dir", str(folder / "data"), "--log-format", "json"]
    command = [sys.executable, *(program or ("-m", "barnabas")), "serve", *options]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
        finally:
            process.kill()
    return (folder / "log").read_text()
