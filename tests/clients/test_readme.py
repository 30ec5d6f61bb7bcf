"""The programs in README.md and docs/getting-started.md run unchanged, except for the broker's address."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.java_build import PROJECT, java_classpath, require, run_quietly
from tests.clients.polling import eventually

README = PROJECT / "README.md"
GUIDE = PROJECT / "docs" / "getting-started.md"
ADDRESS = "127.0.0.1:9092"
ORDERS_EACH = 5


def blocks(document: Path, language: str) -> list[str]:
    text = document.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@contextmanager
def running(program: str, broker: BrokerProcess, output: Path, *arguments: str) -> Generator[None]:
    """The program in a process of its own; its output goes to the file `output`."""
    assert ADDRESS in program
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", program.replace(ADDRESS, broker.address), *arguments],
            stdout=file,
            stderr=subprocess.DEVNULL,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def output_of(program: str, broker: BrokerProcess) -> list[str]:
    """The lines that the program prints before it ends by itself."""
    assert ADDRESS in program
    done = subprocess.run(
        [sys.executable, "-u", "-c", program.replace(ADDRESS, broker.address)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def printed(output: Path) -> list[str]:
    """Complete lines up to now; the last one may be cut."""
    return output.read_text().splitlines()[:-1]


def test_the_consumer_in_the_readme_is_the_first_one_of_the_guide() -> None:
    assert blocks(README, "python") == blocks(GUIDE, "python")[1:2]


@pytest.mark.barnabas
@pytest.mark.clients
def test_two_consumers_of_each_kind_share_the_orders_of_the_first_example(
    own_broker: BrokerProcess, tmp_path: Path
) -> None:
    producer, *consumers = blocks(GUIDE, "python")
    assert len(consumers) == 2
    outputs = [tmp_path / name for name in ("first", "second", "third", "fourth")]
    with ExitStack() as programs:
        programs.enter_context(running(producer, own_broker, tmp_path / "producer"))
        for output, program in zip(outputs, [*consumers, *consumers], strict=True):
            programs.enter_context(running(program, own_broker, output))
        eventually(
            lambda: all(len(printed(output)) >= ORDERS_EACH for output in outputs),
            awaited="each consumer gets some orders",
        )
    lines = [line for output in outputs for line in printed(output)]
    assert all(re.fullmatch(r"0 \d+ b'order \d+'", line) for line in lines), lines
    assert len(set(lines)) == len(lines)


@pytest.mark.clients
def test_the_java_example_compiles(tmp_path: Path) -> None:
    (program,) = blocks(GUIDE, "java")
    name = re.search(r"public class (\w+)", program)
    assert name is not None
    source = tmp_path / f"{name[1]}.java"
    source.write_text(program)
    run_quietly([require("javac"), "-Werror", "-d", str(tmp_path), "-cp", java_classpath(), str(source)])
