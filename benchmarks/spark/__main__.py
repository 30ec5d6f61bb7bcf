"""`python -m benchmarks.spark`: measure the pipeline beside alternatives; print ratios against the targets.

Streaming queries read from one Barnabas; the sources take turns, repeatedly: `barnabas` is `kafka-share`,
`by-offset` is `kafka-topic`, `connector` Spark's own Kafka connector, `driver-held` a share consumer on the
driver, `from-memory` a source in Python that reads nothing: no source in Python is faster. The reports of
`kafka-log` and of the audit follow.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.brokers.barnabas import Barnabas
from benchmarks.brokers.process import end_orderly_on_sigterm
from benchmarks.measurement import FULL, QUICK, Results, Scale, all_met
from benchmarks.report import table, write_json
from benchmarks.spark.session import spark_session
from benchmarks.spark.workloads import RECORD_LOCKS, WORKLOADS, SparkWorkload

PROGRAMS = {"log": "benchmarks.spark_log", "audit": "benchmarks.spark_audit"}
"""Measurements that print their own tables, each in its own process."""


def main() -> int:
    """Run the benchmarks; exit code 1 with --strict if a target was missed."""
    options = _parse()
    end_orderly_on_sigterm()
    results: dict[str, Results] = {}
    queries = [name for name in options.only if name in WORKLOADS]
    if queries:
        results = _measure_queries(queries, QUICK if options.quick else FULL)
        print(f"written to {write_json(results)}", flush=True)
    failed = [name for name in options.only if name in PROGRAMS and not _run_program(PROGRAMS[name])]
    return 1 if failed or (options.strict and not all_met(results)) else 0


def _parse() -> argparse.Namespace:
    known = [*WORKLOADS, *PROGRAMS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=known, default=known, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small runs, once each")
    parser.add_argument("--strict", action="store_true", help="fail if a target is missed")
    return parser.parse_args()


def _measure_queries(names: Sequence[str], scale: Scale) -> dict[str, Results]:
    settings = {"group.share.max.partition.max.record.locks": str(RECORD_LOCKS)}
    results: dict[str, Results] = {}
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as directory:
        broker = Barnabas(Path(directory) / "barnabas", settings)
        broker.start()
        try:
            with spark_session() as spark:
                for name in names:
                    results[name] = _measure(WORKLOADS[name], spark, broker.address, scale)
                    print(table(results[name], WORKLOADS[name].sources), flush=True)
        finally:
            broker.stop()
    return results


def _measure(kind: type[SparkWorkload], spark: SparkSession, bootstrap: str, scale: Scale) -> Results:
    """Run the sources in turn, repeatedly, without counting the first round.

    A source that fails is left out.
    """
    results = Results(kind.name, kind.targets)
    workload = kind(spark, bootstrap, scale)
    workload.prepare()
    for number in range(scale.repeats + 1):
        for source in [name for name in kind.sources if name not in results.failures]:
            print(f"{kind.name}: {source}, run {number + 1}", file=sys.stderr, flush=True)
            try:
                metrics = workload.measure(source)
            except RuntimeError as failure:
                results.failures[source] = str(failure)
                continue
            if number > 0:
                results.runs.setdefault(source, []).append(metrics)
    return results


def _run_program(module: str) -> bool:
    return subprocess.run([sys.executable, "-m", module], check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
