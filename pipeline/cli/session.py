"""The Spark session of a command: every core of this machine unless the user says otherwise.

Under `spark-submit` the master and the driver's settings are those of `spark-submit`; this sets only the ones
that the pipeline needs. `--conf` wins over all of them.

A command that starts its JVM itself sends the output of the JVM and of the Python workers to its log file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.cli.arguments import named_values
from barnabas.pipeline.cli.command_log import CommandLog
from barnabas.pipeline.cli.failures import was_stopped
from barnabas.pipeline.cli.java import check_java
from barnabas.pipeline.cli.jvm import launched_jvm, restored_sigint
from barnabas.pipeline.formats import register_formats
from barnabas.pipeline.spark_errors import has_more_in_log, java_trace

if TYPE_CHECKING:
    from argparse import Namespace

    from pyspark.sql import SparkSession

LOCAL_MASTER: Final = "local[*,4]"
"""Every core; a task is tried four times, as on a cluster, since its Python worker may be killed."""

_ALWAYS: Final = {
    # Over TCP the system delays a task's first message to its Python worker by 40 ms (Nagle's algorithm).
    "spark.python.unix.domain.socket.enabled": "true",
    # Two attempts at the same task would write to the same file, or to the same partition.
    "spark.speculation": "false",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}
_LAUNCHED: Final = {"spark.log.level": "WARN"}
"""For the log file."""
_SUBMITTED: Final = {"spark.log.level": "FATAL"}
"""`spark-submit` shows the log to its user; the command itself reports a failure in one line."""
_LOCAL: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    "spark.ui.enabled": "false",
}


@contextmanager
def open_session(options: Namespace, name: str) -> Generator[SparkSession]:
    """A session with the formats, stopped at the end. `name` is its name in Spark's pages.

    An error of Spark gets a note with the name of the log file, which is kept then. Raises `OptionError` for
    a malformed `--conf`, `PipelineError` if Spark does not start, and ModuleNotFoundError without PySpark.
    """
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    wanted = settings(options, submitted=is_submitted)
    if is_submitted:
        with _running(wanted, name) as spark:
            yield spark
        return
    check_java()
    log = CommandLog(name, options.log_file)
    keep = False
    try:
        with launched_jvm(wanted, _app_name(name), log), _running(wanted, name) as spark:
            yield spark
    except Exception as error:
        keep = has_more_in_log(error) and not was_stopped(error)
        if keep:
            log.add(error, java_trace(error))
            error.add_note(f"Details: {log.path}")
        raise
    finally:
        log.close(keep=keep)


@contextmanager
def _running(wanted: Mapping[str, str], name: str) -> Generator[SparkSession]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(_app_name(name))
    for setting, value in wanted.items():
        builder = builder.config(setting, value)
    with restored_sigint():
        spark = builder.getOrCreate()
    try:
        register_formats(spark)
        yield spark
    finally:
        spark.stop()


def _app_name(command: str) -> str:
    return f"barnabas pipeline {command}"


def settings(options: Namespace, *, submitted: bool) -> dict[str, str]:
    """Spark's settings for these options; `submitted` is whether `spark-submit` started this process."""
    chosen = _ALWAYS | (_SUBMITTED if submitted else _LAUNCHED)
    if not submitted:
        chosen["spark.master"] = options.master or LOCAL_MASTER
    elif options.master is not None:
        chosen["spark.master"] = options.master
    if chosen.get("spark.master", "").startswith("local"):
        chosen |= _LOCAL
        # Workers would start the python3 of the path, which may be another one without this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return chosen | named_values("--conf", options.conf)
