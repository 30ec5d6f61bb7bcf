"""The options, and the one clear error for each that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.log_source.log_options import parse_log_options

DEFAULTS = {"path": "/data"}


def test_missing_options_have_defaults() -> None:
    options = parse_log_options(DEFAULTS)
    assert options.paths == ("/data",)
    assert options.topics is None
    assert options.columns[0] == "key"
    assert "damage" not in options.columns
    assert (options.starting_offsets, options.ending_offsets) == ("earliest", "latest")
    assert (options.is_committed, options.skips_damage, options.has_pushdown) == (False, False, True)
    assert options.slice_bytes == 128 * 2**20


def test_names_of_options_and_words_are_taken_in_any_case() -> None:
    options = parse_log_options({"PATH": "/data", "ISOLATION": "Read_Committed", "oncorrupt": "SKIP"})
    assert options.is_committed
    assert options.skips_damage


def test_paths_are_made_absolute_and_each_is_read_once() -> None:
    options = parse_log_options({"paths": '["/a", "b", "/a"]'})
    assert options.paths == ("/a", str(Path("b").absolute()))


def test_offsets_are_taken_by_partition() -> None:
    options = parse_log_options({**DEFAULTS, "startingOffsets": '{"a": {"0": 5, "1": -2}, "b": {"7": -1}}'})
    assert options.starting_offsets == {("a", 0): 5, ("a", 1): -2, ("b", 7): -1}


BAD_OPTIONS: list[tuple[dict[str, str], str]] = [
    ({}, "path: is needed"),
    ({"path": " "}, "path: is needed"),
    ({"paths": "[]"}, "paths: "),
    ({"paths": "/a"}, "paths: "),
    ({**DEFAULTS, "topic": "a"}, "topic: there is no such option; did you mean topics?"),
    ({**DEFAULTS, "topics": "a,,b"}, "topics: "),
    ({**DEFAULTS, "columns": "key,colour"}, "columns: there is no column 'colour'"),
    ({**DEFAULTS, "columns": "key,KEY"}, "columns: key is named twice"),
    ({**DEFAULTS, "isolation": "serializable"}, "isolation: "),
    ({**DEFAULTS, "onCorrupt": "ignore"}, "onCorrupt: "),
    ({**DEFAULTS, "sliceBytes": "0"}, "sliceBytes: "),
    ({**DEFAULTS, "sliceBytes": "128m"}, "sliceBytes: "),
    ({**DEFAULTS, "startingOffsets": "newest"}, "startingOffsets: "),
    ({**DEFAULTS, "startingOffsets": '{"t": 5}'}, "startingOffsets: "),
    ({**DEFAULTS, "startingOffsets": '{"t": {"0": "5"}}'}, "startingOffsets: "),
    ({**DEFAULTS, "startingOffsets": '{"t": {"0": -3}}'}, "startingOffsets: "),
    ({**DEFAULTS, "endingOffsets": "[1]"}, "endingOffsets: "),
    ({**DEFAULTS, "startingTimestamp": "yesterday"}, "startingTimestamp: "),
    ({**DEFAULTS, "startingTimestamp": "1", "startingOffsets": "earliest"}, "startingTimestamp: "),
    ({**DEFAULTS, "endingTimestamp": "1", "endingOffsets": "latest"}, "endingTimestamp: "),
    ({**DEFAULTS, "pushdown": "maybe"}, "pushdown: "),
]


@pytest.mark.parametrize(("given", "message"), BAD_OPTIONS, ids=str)
def test_a_wrong_option_is_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as error:
        parse_log_options(given)
    assert str(error.value).startswith(message)
