"""`python -m benchmarks.spark_audit`: the time and memory for an audit of ten million deliveries.

The logs are in a temporary directory (`TMPDIR`) and are read from the page cache. The time of an audit is
that from the call to the finished report, in Spark on one core and on two; the time for its deliveries as
Parquet follows. "task" is the audit's own generator over one partition in its own process, with that
process's largest resident size. `--deliveries N` creates smaller logs, to see that everything works.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from barnabas.pipeline import register
from barnabas.pipeline.audit import audit, write_report
from barnabas.pipeline.audit.control_decoder import IS_NATIVE
from barnabas.pipeline.audit.log_replay import FINDINGS, ReplayTask, replay
from barnabas.pipeline.log_source.directories import find_partitions
from barnabas.pipeline.log_source.slicing import LogBounds, slice_partition
from benchmarks.audit_logs import Shape, write_logs

DELIVERIES: Final = 10_000_000
SECONDS_MAX: Final = 120
TASK_MB_MAX: Final = 256
RANGE_SIZES: Final = (1, 500)
TOPIC: Final = "orders"


class TaskFigures(NamedTuple):
    """One partition's replay: seconds of wall time, seconds of CPU time, largest resident MB."""

    seconds: float
    cpu_seconds: float
    resident_mb: float


def main() -> int:
    """Prints the figures; exit code 1 if a target was missed."""
    options = _parse()
    print(f"decoder: {'native' if IS_NATIVE else 'Python'}; {options.deliveries:,} deliveries, 2 partitions")
    print("records a range, log MB | task s, cpu s, MB | 1 core s, 2 cores s, ratio | Parquet s")
    missed = False
    for range_records in RANGE_SIZES:
        with tempfile.TemporaryDirectory(prefix="audit-") as directory:
            data = Path(directory) / "data"
            size_bytes = write_logs(data, TOPIC, Shape(options.deliveries, range_records))
            missed = _measure(data, Path(directory), range_records, size_bytes) or missed
    print(f"targets: {SECONDS_MAX} s on two cores, {TASK_MB_MAX} MB a task; {'missed' if missed else 'met'}")
    return 1 if missed else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_audit", description=__doc__)
    parser.add_argument("--deliveries", type=int, default=DELIVERIES)
    return parser.parse_args()


def _measure(data: Path, directory: Path, range_records: int, size_bytes: int) -> bool:
    """Prints a line. Returns whether a target was missed."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        task = pool.submit(_replay_partition, str(data)).result()
    one_core, _ = _audit_in_process(data, directory, 1)
    two_cores, parquet = _audit_in_process(data, directory, 2)
    print(
        f"{range_records}, {size_bytes / 1e6:.0f} | "
        f"{task.seconds:.1f}, {task.cpu_seconds:.1f}, {task.resident_mb:.0f} | "
        f"{one_core:.1f}, {two_cores:.1f}, {one_core / two_cores:.2f} | {parquet:.1f}",
        flush=True,
    )
    return two_cores > SECONDS_MAX or task.resident_mb > TASK_MB_MAX


def _replay_partition(data: str) -> TaskFigures:
    (folder, *_) = find_partitions([data], None)
    task = ReplayTask(pieces=slice_partition(folder, LogBounds(), 2**62), is_cut=False, log_start_offset=0)
    began, cpu_began = time.perf_counter(), time.process_time()
    for _ in replay(task, FINDINGS):
        pass
    resident_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return TaskFigures(time.perf_counter() - began, time.process_time() - cpu_began, resident_mb)


def _audit_in_process(data: Path, directory: Path, core_count: int) -> Sequence[float]:
    """In its own process, because the first session fixes the number of cores."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_audit, str(data), str(directory), core_count).result()


def _audit(data: str, directory: str, core_count: int) -> tuple[float, float]:
    """Seconds to the finished report, and from there to the deliveries as Parquet."""
    spark = _session(core_count)
    try:
        spark.range(1).count()
        began = time.perf_counter()
        with audit(spark, [data]) as audited:
            write_report(audited, Path(directory) / "audit.html")
            reported = time.perf_counter()
            audited.deliveries.write.parquet(f"{directory}/deliveries-{core_count}")
        return reported - began, time.perf_counter() - reported
    finally:
        spark.stop()


def _session(core_count: int) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(f"local[{core_count}]")
        .appName("audit")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", str(core_count))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    return session


if __name__ == "__main__":
    sys.exit(main())
