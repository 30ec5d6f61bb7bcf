"""`python -m benchmarks.testing`: the tests of `examples/orders`, with the test kit and with Apache Kafka.

The same tests run with both brokers, each in a process of pytest that also starts the broker. With Apache
Kafka the tests get a stand-in for the kit's broker: it waits in real time where the kit advances the clock,
and reads topics with a consumer. Its locks last `LOCK_MS` instead of 30 s, so that the wait is short. Tests
that cause faults run with the kit only, and are left out. The program prints a table of medians.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.testing_on_kafka import LOCK_MS

PROJECT: Final = Path(__file__).resolve().parents[1]
TESTS: Final = PROJECT / "examples" / "orders" / "python"

_DURATION: Final = re.compile(r"^([\d.]+)s (setup|call|teardown) +\S+::test_(\w+)", re.MULTILINE)
_CONFTEST = "from benchmarks.testing_on_kafka import share_broker as share_broker\n"


class Times(NamedTuple):
    """The durations of one run in seconds, without the start of pytest itself."""

    surroundings: float
    """The start and the end of the broker, and the topics and groups of all tests."""
    by_test: dict[str, float]

    @property
    def whole(self) -> float:
        return self.surroundings + sum(self.by_test.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=3, help="the runs of each (default: %(default)s)")
    options = parser.parse_args()
    columns = {
        "test kit": [_run(on_kafka=False) for _ in range(options.runs)],
        f"Apache Kafka, locks of {LOCK_MS // 1000} s": [_run(on_kafka=True) for _ in range(options.runs)],
    }
    for line in table(columns):
        print(line)


def table(columns: Mapping[str, Sequence[Times]]) -> list[str]:
    """The medians of each column's runs as a table in Markdown."""
    first = next(iter(columns.values()))[0]
    lines = [f"| seconds | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    rows = {
        "start and end of the broker, topics, groups": [
            [run.surroundings for run in runs] for runs in columns.values()
        ]
    }
    for test in first.by_test:
        rows[test.replace("_", " ")] = [[run.by_test[test] for run in runs] for runs in columns.values()]
    rows["all"] = [[run.whole for run in runs] for runs in columns.values()]
    for name, values in rows.items():
        lines.append(f"| {name} | {' | '.join(f'{statistics.median(one):.2f}' for one in values)} |")
    return lines


def _run(*, on_kafka: bool) -> Times:
    with tempfile.TemporaryDirectory() as directory:
        suite = Path(directory)
        for path in (*TESTS.glob("*.py"), TESTS / "pytest.ini"):
            (suite / path.name).write_bytes(path.read_bytes())
        if on_kafka:
            (suite / "conftest.py").write_text(_CONFTEST)
        options = ["-p", "no:cacheprovider", "-m", "not faults", "-vv", "--durations=0"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            cwd=suite,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"The tests failed:\n{done.stdout}{done.stderr}")
        return _times(done.stdout)


def _times(output: str) -> Times:
    """The durations that pytest has printed; cases of one test are added up."""
    surroundings, by_test = 0.0, dict[str, float]()
    for seconds, step, test in _DURATION.findall(output):
        if step == "call":
            by_test[test] = by_test.get(test, 0.0) + float(seconds)
        else:
            surroundings += float(seconds)
    return Times(surroundings, by_test)


if __name__ == "__main__":
    main()
