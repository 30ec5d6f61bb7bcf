"""The Spark session of the benchmarks: local, two cores, Spark's connector and this project's formats."""

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from tests.clients.java_build import PROJECT
from tests.pipeline.spark_jars import spark_class_path

from barnabas.pipeline import register
from benchmarks.spark.driver_held import DriverHeldSource
from benchmarks.spark.from_memory import FromMemorySource

CORES = 2
PROGRESS_KEPT = 10_000


@contextmanager
def spark_session() -> Generator[SparkSession]:
    """A session that is stopped at the end; the files of its JVM are removed."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(PROJECT)
    with tempfile.TemporaryDirectory(prefix="benchmarks-spark-") as directory:
        spark = (
            SparkSession.builder.master(f"local[{CORES}]")
            .appName("barnabas-benchmarks")
            .config("spark.python.unix.domain.socket.enabled", "true")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "1g")
            .config("spark.driver.extraClassPath", spark_class_path())
            .config("spark.sql.shuffle.partitions", str(CORES))
            .config("spark.sql.streaming.numRecentProgressUpdates", str(PROGRESS_KEPT))
            .config("spark.local.dir", directory)
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        register(spark)
        spark.dataSource.register(DriverHeldSource)
        spark.dataSource.register(FromMemorySource)
        try:
            yield spark
        finally:
            spark.stop()
