"""Files of decisions: written, read, and malformed ones."""

from pathlib import Path
from typing import cast

import pytest

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.decisions import NONE, Decision, DecisionFiles


def test_decisions_are_read_as_ranges(tmp_path: Path) -> None:
    files = DecisionFiles(str(tmp_path / "acks"))
    assert files.read() == NONE
    files.write(
        3, [("a", 0, 5, "release"), ("a", 0, 4, "release"), ("a", 0, 9, "accept"), ("b", 1, 7, "reject")]
    )
    assert files.read() == ({("a", 0): [(4, 5)]}, {("b", 1): [(7, 7)]})


def test_a_batch_that_is_run_again_replaces_its_decisions(tmp_path: Path) -> None:
    files = DecisionFiles(f"file://{tmp_path}/acks")
    files.write(3, [("a", 0, 5, "release")])
    files.write(3, [("a", 0, 6, "reject")])
    assert files.read() == ({}, {("a", 0): [(6, 6)]})
    files.clear()
    assert files.read() == NONE
    assert list((tmp_path / "acks").iterdir()) == []


def test_an_unknown_decision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"^ack is 'maybe' for a-0 offset 5; it has to be accept"):
        DecisionFiles(str(tmp_path)).write(3, [("a", 0, 5, cast("Decision", "maybe"))])


@pytest.mark.parametrize("content", ["", "[]", '{"version": 2}', '{"version": 1, "release": {"a": 5}}'])
def test_a_file_that_holds_no_decisions_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "000000000003.decisions.json"
    path.write_text(content)
    with pytest.raises(PipelineError, match=f"^ackDir: {path} holds no decisions"):
        DecisionFiles(str(tmp_path)).read()


def test_a_directory_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match=r"^ackDir: "):
        DecisionFiles(str(tmp_path / "file")).write(3, [])


def test_a_malformed_uri_is_named() -> None:
    with pytest.raises(PipelineError, match=r"^ackDir: nowhere://x is no directory"):
        DecisionFiles("nowhere://x")


def test_keys_in_a_uri_are_in_no_error() -> None:
    with pytest.raises(PipelineError, match=r"^ackDir: nowhere://\*\*\*@bucket/x is no directory") as caught:
        DecisionFiles("nowhere://key:secret@bucket/x")
    assert "secret" not in str(caught.value)
