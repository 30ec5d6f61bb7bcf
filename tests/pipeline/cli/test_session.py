"""Spark's settings for a command, by its master and its arguments."""

import sys
from argparse import Namespace

import pytest

from barnabas.pipeline.cli.session import settings
from barnabas.pipeline.errors import OptionError


def options(master: str | None = None, *conf: str) -> Namespace:
    return Namespace(master=master, conf=list(conf))


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "to be restored")
        monkeypatch.delenv(name)


def test_by_default_spark_has_every_core_of_this_machine_and_this_python() -> None:
    import os

    found = settings(options(), submitted=False)
    assert found["spark.master"] == "local[*,4]", "a task is tried again if its Python worker dies"
    assert found["spark.ui.enabled"] == "false"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_a_cluster_is_told_nothing_that_holds_for_one_machine() -> None:
    found = settings(options("spark://master:7077"), submitted=False)
    assert found["spark.master"] == "spark://master:7077"
    assert "spark.driver.host" not in found


def test_spark_submit_chooses_the_master() -> None:
    found = settings(options(), submitted=True)
    assert "spark.master" not in found
    assert found["spark.log.level"] == "FATAL"
    assert found["spark.sql.session.timeZone"] == "UTC"


def test_the_users_settings_win() -> None:
    found = settings(options(None, "spark.ui.enabled=true", "spark.x=a=b"), submitted=False)
    assert found["spark.ui.enabled"] == "true"
    assert found["spark.x"] == "a=b"


def test_a_malformed_setting_is_named() -> None:
    with pytest.raises(OptionError, match=r"^--conf: 'nonsense' is not NAME=VALUE"):
        settings(options(None, "nonsense"), submitted=False)
