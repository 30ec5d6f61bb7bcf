"""`python -m tests.fuzz`: feed the targets, each for some seconds, with a process for each core.

With Atheris, where it is installed, the code that the bytes reach guides the choice of further bytes; else
Hypothesis chooses them without guidance, for the whole time. Bytes by which Atheris finds a bug are left in
.cache/fuzz; --replay feeds them to their target again. Hypothesis prints them.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from tests.fuzz.strategies import inputs
from tests.fuzz.targets import SEEDS, TARGETS

_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "fuzz"
_EXAMPLES_PER_ROUND = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if a target failed."""
    options = _parse(arguments)
    if options.replay is not None:
        for name in options.only:
            TARGETS[name](options.replay.read_bytes())
        return 0
    has_atheris = importlib.util.find_spec("atheris") is not None
    engine = "Atheris" if has_atheris else "Hypothesis (Atheris is not installed for this Python)"
    print(f"{len(options.only)} targets for {options.seconds} s each, with {engine}", flush=True)
    if len(options.only) == 1:
        feed = _feed_by_atheris if has_atheris else _feed_by_hypothesis
        failed = [name for name in options.only if not feed(name, options.seconds)]
    else:
        failed = _feed_in_processes(options.only, options.seconds)
    print(f"failed: {', '.join(failed)}" if failed else "no target failed")
    return 1 if failed else 0


def _feed_in_processes(names: Sequence[str], seconds: int) -> list[str]:
    """The targets that failed. The output of each is printed when it has ended."""

    def feed(name: str) -> bool:
        command = [sys.executable, "-m", "tests.fuzz", "--only", name, "--seconds", str(seconds)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        print(done.stdout if done.returncode else name, flush=True)
        return done.returncode == 0

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        results = threads.map(feed, names)
        return [name for name, is_good in zip(names, results, strict=True) if not is_good]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--only", type=_names, default=list(TARGETS), metavar="TARGET,...")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--replay", type=Path, metavar="FILE", help="feed the targets with these bytes alone")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in TARGETS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(TARGETS)}")
    return names


def _feed_by_atheris(name: str, seconds: int) -> bool:
    print(name, flush=True)
    engine = [sys.executable, "-m", "tests.fuzz.atheris_engine"]
    return subprocess.run([*engine, name, str(seconds), str(_CACHE / name)], check=False).returncode == 0


def _feed_by_hypothesis(name: str, seconds: int) -> bool:
    @settings(max_examples=_EXAMPLES_PER_ROUND, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(inputs(SEEDS.get(name, [])))
    def feed(data: bytes) -> None:
        TARGETS[name](data)

    print(name, flush=True)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            feed()
    except Exception as failure:
        print(f"{name}: {failure!r}", *failure.__notes__ if hasattr(failure, "__notes__") else (), sep="\n")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
