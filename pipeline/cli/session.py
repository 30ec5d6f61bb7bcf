"""The Spark session of a command: every core of this machine unless the user says otherwise.

Under `spark-submit` the master and everything about the driver are what that was told; only what the pipeline
needs for itself is set. `--conf` wins over all of it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.pipeline import register
from barnabas.pipeline.cli.arguments import named_values

if TYPE_CHECKING:
    from argparse import Namespace

    from pyspark.sql import SparkSession

LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
"""What holds until Spark has read `spark.log.level`."""

_ALWAYS: Final = {
    # Over TCP the system holds back what a task tells its Python worker first, for 40 ms (Nagle's algorithm).
    "spark.python.unix.domain.socket.enabled": "true",
    # Two attempts at the same task would write to the same file, or to the same partition.
    "spark.speculation": "false",
    # A command says itself what failed, in one line; --conf spark.log.level=ERROR shows where in Spark.
    "spark.log.level": "FATAL",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    "spark.ui.enabled": "false",
}


@contextmanager
def open_session(options: Namespace, name: str) -> Generator[SparkSession]:
    """A session that knows the formats, stopped at the end. `name` is what Spark's pages call it.

    Raises `OptionError` for a `--conf` that makes no sense, ModuleNotFoundError without PySpark.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"barnabas pipeline {name}")
    for setting, value in settings(options, submitted="PYSPARK_GATEWAY_PORT" in os.environ).items():
        builder = builder.config(setting, value)
    interrupt = signal.getsignal(signal.SIGINT)
    spark = builder.getOrCreate()
    signal.signal(signal.SIGINT, interrupt)  # PySpark has put its own there
    try:
        register(spark)
        yield spark
    finally:
        spark.stop()


def settings(options: Namespace, *, submitted: bool) -> dict[str, str]:
    """Spark's settings for these options; `submitted` is whether `spark-submit` started this process."""
    chosen = dict(_ALWAYS)
    if not submitted:
        chosen["spark.master"] = options.master or "local[*]"
        chosen["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"
    elif options.master is not None:
        chosen["spark.master"] = options.master
    if chosen.get("spark.master", "").startswith("local"):
        chosen |= _LOCAL
        # Workers would take whatever python3 is on the path, which may be another one without this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return chosen | named_values("--conf", options.conf)
