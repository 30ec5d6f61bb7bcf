"""How a worker makes a decoder from a schema file, and the framing that may stand before a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.errors import PipelineError, install_hint
from barnabas.pipeline.ingest.values.decoder import Decoder, ValueMisfit

if TYPE_CHECKING:
    from barnabas.pipeline.columnar import ArrowType
    from barnabas.pipeline.ingest.values.options import ValueOptions

_MAGIC: Final = 0
_HEADER_BYTES: Final = 5
_INDEXES_MAX: Final = 64
_VARINT_BYTES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class DecoderRecipe:
    """Makes a decoder in a worker, which has none of the driver's files."""

    kind: str
    schema: bytes
    message: str | None
    framing: str

    @classmethod
    def of(cls, options: ValueOptions) -> DecoderRecipe:
        """Reads the schema file, and compiles it if it is a .proto. Raises `OptionError`."""
        schema = options.read()
        if options.schema_file.lower().endswith(".proto"):
            from barnabas.pipeline.ingest.values.proto_file import compiled

            schema = compiled(options.schema_file)
        return cls(options.kind, schema, options.message, options.framing)

    def make(self) -> Decoder:
        """The decoder. Raises `OptionError` if the schema is malformed, or a part has no column type."""
        try:
            decoder = self._make()
        except ModuleNotFoundError as error:
            raise PipelineError(
                f"Decoding {self.kind} needs {error.name}: {install_hint('schemas')}"
            ) from error
        return decoder if self.framing == "none" else _Unframed(decoder, has_indexes=self.kind == "protobuf")

    def _make(self) -> Decoder:
        if self.kind == "avro":
            from barnabas.pipeline.ingest.values.avro import AvroDecoder

            return AvroDecoder(self.schema)
        if self.kind == "protobuf":
            from barnabas.pipeline.ingest.values.protobuf import ProtobufDecoder

            return ProtobufDecoder(self.schema, self.message)
        from barnabas.pipeline.ingest.values.json_schema import JsonDecoder

        return JsonDecoder(self.schema)


class _Unframed:
    """Skips the framing of Confluent's serializers before a value. The schema's number is not looked up."""

    def __init__(self, decoder: Decoder, *, has_indexes: bool) -> None:
        self._decoder = decoder
        self._has_indexes = has_indexes

    @property
    def arrow_type(self) -> ArrowType:
        return self._decoder.arrow_type

    def decode(self, value: bytes) -> Any:
        if len(value) < _HEADER_BYTES or value[0] != _MAGIC:
            raise ValueMisfit("it doesn't begin with the magic byte and a schema's number")
        begin = _behind_indexes(value) if self._has_indexes else _HEADER_BYTES
        return self._decoder.decode(value[begin:])


def _behind_indexes(value: bytes) -> int:
    """The position behind the message's indexes: their count, then that many numbers, as zigzag varints."""

    count, position = _varint(value, _HEADER_BYTES)
    if not 0 <= count <= _INDEXES_MAX:
        raise ValueMisfit(f"{count} message indexes before it")
    for _ in range(count):
        _, position = _varint(value, position)
    return position


def _varint(value: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(_VARINT_BYTES_MAX):
        if position >= len(value):
            raise ValueMisfit("it ends in the message indexes")
        byte = value[position]
        number |= (byte & 0x7F) << (7 * shift)
        position += 1
        if byte < 0x80:
            break
    return (number >> 1) ^ -(number & 1), position
