"""Wrong options of ingest are refused; the error names the field."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.ingest import IngestOptions, ValueOptions
from barnabas.pipeline.tables import TableOptions

TABLE = TableOptions(location="lake")
VALUES = ValueOptions(schema_file="order.json")


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"source": "kafka"}, "source"),
        ({"checkpoint": ""}, "checkpoint"),
        ({"interval_ms": -1}, "interval_ms"),
        ({"invalid": "ignore"}, "invalid"),
        ({"invalid": "reject"}, "invalid"),
        ({"invalid": "side-table", "values": VALUES}, "side_table"),
        ({"side_table": TABLE, "values": VALUES}, "side_table"),
        ({"invalid": "side-table", "values": VALUES, "side_table": TABLE}, "side_table"),
        ({"invalid": "reject", "values": VALUES, "source": "kafka-topic"}, "invalid"),
    ],
)
def test_a_wrong_option_of_ingest_is_named(given: Any, option: str) -> None:
    with pytest.raises(OptionError) as caught:
        ingest_options(given)
    assert caught.value.option == option


def ingest_options(given: dict[str, Any]) -> IngestOptions:
    complete: dict[str, Any] = {"source_options": {}, "table": TABLE, "checkpoint": "c", **given}
    return IngestOptions(**complete)


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"schema_file": "a.txt"}, "schema_file"),
        ({"schema_file": "a.json", "framing": "x"}, "framing"),
        ({"schema_file": "a.json", "message": "M"}, "message"),
    ],
)
def test_a_wrong_option_for_values_is_named(given: Any, option: str) -> None:
    with pytest.raises(OptionError) as caught:
        ValueOptions(**given)
    assert caught.value.option == option


def test_a_schema_file_above_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.pipeline.ingest.values.options.SCHEMA_BYTES_MAX", 3)
    (tmp_path / "a.json").write_text("null")
    with pytest.raises(OptionError, match="larger than 3 bytes"):
        ValueOptions(schema_file=str(tmp_path / "a.json")).read()
