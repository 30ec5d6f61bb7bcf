"""Data directories that cannot be served: one clear line, exit code 1, and an unchanged directory."""

import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess

pytestmark = pytest.mark.barnabas


def refusal(command: Path, directory: Path, *, before: Callable[[], None] | None = None) -> str:
    """The broker's standard error; it ends immediately with exit code 1."""
    done = subprocess.run(
        [command, "serve", "--listen", "127.0.0.1:0", "--data-dir", directory],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=before,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("barnabas: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_second_broker_names_the_process_of_the_first(
    own_broker: BrokerProcess, barnabas_command: Path
) -> None:
    complaint = refusal(barnabas_command, own_broker.data_directory)
    assert f"{own_broker.data_directory} is used by a running broker, process {own_broker.pid}." in complaint


def test_a_file_is_no_data_directory(barnabas_command: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    for directory in (file, file / "below"):
        assert "is a file, not a directory" in refusal(barnabas_command, directory)
    assert file.read_text() == "precious"


def test_a_directory_of_other_things_is_left_alone(barnabas_command: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    assert "it has no meta.properties, but thesis.txt" in refusal(barnabas_command, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_disk_that_is_full_at_the_start_is_reported(barnabas_command: Path, tmp_path: Path) -> None:
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    assert "There is no room left" in refusal(barnabas_command, tmp_path / "data", before=no_room)


def test_another_nodes_directory_is_refused(barnabas_command: Path, tmp_path: Path) -> None:
    properties = "version=1\ncluster.id=c\nnode.id=7\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    (tmp_path / "meta.properties").write_text(properties)
    assert "belongs to node 7, not 1" in refusal(barnabas_command, tmp_path)


@pytest.mark.parametrize(
    ("properties", "complaint"),
    [
        ("version=0\nbroker.id=1\n", "has the version 0"),
        ("nonsense", "meta.properties is damaged: it has no version"),
    ],
)
def test_invalid_properties_are_refused(
    barnabas_command: Path, tmp_path: Path, properties: str, complaint: str
) -> None:
    (tmp_path / "meta.properties").write_text(properties)
    assert complaint in refusal(barnabas_command, tmp_path)


def test_missing_parents_are_created(barnabas_command: Path, tmp_path: Path) -> None:
    broker = BrokerProcess(barnabas_command, tmp_path / "new" / "directory" / "data")
    broker.start()
    assert broker.stop() == 0
    assert (broker.data_directory / "meta.properties").exists()
