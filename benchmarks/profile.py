"""`python -m benchmarks.profile WORKLOAD`: a flame graph of Barnabas under one workload, from py-spy."""

import argparse
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.brokers.barnabas import Barnabas
from benchmarks.brokers.process import LocalBroker, end_orderly_on_sigterm
from benchmarks.measurement import FULL, QUICK
from benchmarks.report import RESULTS
from benchmarks.workloads import WORKLOADS

SAMPLES_PER_SECOND = 500
START_THEIR_OWN = {"start", "start_partitions", "recovery"}
"""Workloads that do not use the observed broker."""


def main() -> None:
    """Prepare and warm up the workload, then measure it once under py-spy."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("workload", choices=sorted(WORKLOADS.keys() - START_THEIR_OWN))
    parser.add_argument("--quick", action="store_true", help="a small run")
    parser.add_argument("--native", action="store_true", help="also show frames of C extensions")
    options = parser.parse_args()
    end_orderly_on_sigterm()
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="profile-"))
        broker = Barnabas(Path(directory) / "barnabas")
        broker.start()
        stack.callback(broker.stop)
        workload = WORKLOADS[options.workload](broker, QUICK if options.quick else FULL)
        stack.callback(workload.finish)
        workload.prepare()
        workload.measure()
        graph = RESULTS / f"profile-{options.workload}.svg"
        assert isinstance(workload.measured, LocalBroker)
        observer = _observe(workload.measured.pid, graph, native=options.native)
        print(workload.measure())
        observer.send_signal(signal.SIGINT)
        observer.wait(60)
        print(graph)


def _observe(pid: int, graph: Path, *, native: bool) -> "subprocess.Popen[bytes]":
    """Attach py-spy to a process; it writes its graph when it is interrupted."""
    RESULTS.mkdir(exist_ok=True)
    command = [
        *(str(Path(sys.executable).with_name("py-spy")), "record", "--pid", str(pid)),
        *("--output", str(graph), "--rate", str(SAMPLES_PER_SECOND), "--duration", "unlimited"),
    ]
    return subprocess.Popen([*command, "--native"] if native else command)


if __name__ == "__main__":
    main()
