"""Java: looked for where Spark looks for it, and the reason if a JVM does not start."""

import subprocess
from pathlib import Path

import pytest

from barnabas.pipeline.cli.java import NEEDED, check_java, startup_failure
from barnabas.pipeline.errors import PipelineError
from tests.clients.installation import installed_barnabas


def java_in(directory: Path) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch(mode=0o755)
    return java


def complaint(**environment: str) -> str:
    """The message, empty if there is a Java."""
    try:
        check_java(environment)
    except PipelineError as error:
        return str(error)
    return ""


def test_java_on_the_path_is_enough(tmp_path: Path) -> None:
    assert complaint(PATH=str(java_in(tmp_path).parent)) == ""


def test_java_home_is_enough(tmp_path: Path) -> None:
    java_in(tmp_path)
    assert complaint(PATH="", JAVA_HOME=str(tmp_path)) == ""


def test_without_java_the_error_names_the_version_to_install(tmp_path: Path) -> None:
    assert complaint(PATH=str(tmp_path)).startswith(f"{NEEDED}: install it, or set JAVA_HOME")


def test_a_java_home_without_java_is_named_even_if_java_is_on_the_path(tmp_path: Path) -> None:
    path = str(java_in(tmp_path).parent)
    assert "JAVA_HOME=/nowhere has no bin/java" in complaint(PATH=path, JAVA_HOME="/nowhere")


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            ["Error: Could not find", "\tjava.lang.UnsupportedClassVersionError: class file version 61.0"],
            f"{NEEDED}; the Java that was found is older: set JAVA_HOME to a newer one.",
        ),
        (
            [
                "WARNING: Using incubator modules: jdk.incubator.vector",
                'Exception in thread "main" org.apache.spark.SparkException: Master must be yarn or local',
                "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1)",
            ],
            "Spark did not start: Master must be yarn or local (SparkException)",
        ),
        (["Error: Invalid heap size: -Xmx1k"], "Spark did not start: Invalid heap size: -Xmx1k"),
        (["Unrecognized VM option 'Nonsense'"], "Spark did not start: Unrecognized VM option 'Nonsense'"),
        (["exec: java: not found", ""], "Spark did not start: exec: java: not found"),
        ([], "Spark did not start: the JVM ended without a message"),
    ],
)
def test_the_reason_comes_from_the_output_of_the_jvm(printed: list[str], reason: str) -> None:
    assert startup_failure(printed) == reason


def test_a_java_that_is_too_old_ends_the_command_with_one_line_and_the_name_of_its_log(
    tmp_path: Path,
) -> None:
    java = java_in(tmp_path)
    java.write_text(
        "#!/bin/sh\necho java.lang.UnsupportedClassVersionError: class file version 61.0 >&2\nexit 1\n"
    )
    log, data = tmp_path / "command.log", tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").touch()
    ended = subprocess.run(
        [str(installed_barnabas()), "pipeline", "audit", str(data), "--log-file", str(log)],
        env={"PATH": "/usr/bin:/bin", "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    reason = f"{NEEDED}; the Java that was found is older: set JAVA_HOME to a newer one"
    assert ended.stderr == f"barnabas: {reason}. Details: {log}\n"
    assert "class file version 61.0" in log.read_text()
