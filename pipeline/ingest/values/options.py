"""The options for decoding values: the schema file, and the framing before each value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from barnabas.pipeline.errors import OptionError

KINDS: Final = {
    ".json": "json",
    ".avsc": "avro",
    ".proto": "protobuf",
    ".desc": "protobuf",
    ".pb": "protobuf",
    ".binpb": "protobuf",
}
"""By the end of a schema file's name."""

FRAMINGS: Final = ("none", "confluent")
SCHEMA_BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOptions:
    """A schema file, which the driver reads."""

    schema_file: str
    """JSON Schema (.json), Avro (.avsc), Protobuf (.proto, or a descriptor set: .desc, .pb, .binpb)."""
    message: str | None = None
    """The Protobuf message, with its package; may be left out where the file defines only one."""
    framing: Literal["none", "confluent"] = "none"
    """`confluent`: a magic byte, a schema's number and, for Protobuf, indexes stand before the value."""
    flatten: bool = False
    """Whether the value's fields become columns beside `key`, `offset` ..., instead of one column `value`."""

    def __post_init__(self) -> None:
        if self.framing not in FRAMINGS:
            raise OptionError("framing", f"{self.framing!r} is not {' or '.join(FRAMINGS)}")
        kind = self.kind  # refuses files with other names
        if self.message is not None and kind != "protobuf":
            raise OptionError("message", "is for Protobuf")

    @property
    def kind(self) -> str:
        """`json`, `avro` or `protobuf`. Raises `OptionError` for a file of another name."""
        kind = KINDS.get(Path(self.schema_file).suffix.lower())
        if kind is None:
            raise OptionError(
                "schema_file", f"{self.schema_file} ends in none of {', '.join(KINDS)}, which name its kind"
            )
        return kind

    def read(self) -> bytes:
        """The file. Raises `OptionError` if it cannot be read."""
        path = Path(self.schema_file)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise OptionError("schema_file", f"{path}: {error.strerror}") from error
        if len(content) > SCHEMA_BYTES_MAX:
            raise OptionError("schema_file", f"{path} is larger than {SCHEMA_BYTES_MAX:,} bytes")
        return content
