"""Spark sessions of tests: local, with two cores, like the smallest machine that runs the pipeline."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import SparkSession

from barnabas.pipeline import register

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    # Tests are over before it pays to compile them well, and other tests want the cores.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def local_session(
    directory: Path, *, memory: str, settings: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    """A session that knows the formats, with its temporary files below `directory`."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("barnabas-tests")
    builder = builder.config("spark.driver.memory", memory)
    builder = builder.config("spark.local.dir", str(directory / "local"))
    for name, value in {**_SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    return session
