"""Decodes the values of records in Spark's Python workers, a column at a time through Arrow.

A record whose value doesn't fit keeps its bytes and gets a reason; other records are not affected. Any error
that its bytes cause is such a reason, except a lack of memory, which is not the record's fault. A record
without a value (a tombstone) stays without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.columnar import ArrowType, RecordBatch
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.ingest.values.decoder import Decoder, ValueMisfit
from barnabas.pipeline.ingest.values.recipe import DecoderRecipe
from barnabas.pipeline.tables.arrow_types import map_in_arrow, type_from_arrow
from barnabas.pipeline.tables.columns import all_nullable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from barnabas.pipeline.ingest.values.options import ValueOptions

VALUE_COLUMN: Final = "value"
REASON_COLUMN: Final = "reason"

REASON_CHARACTERS_MAX: Final = 500
"""Longer reasons are cut: a validator may quote the whole value."""

_DECODED: Final = "__decoded"


class ValueDecoding:
    """Decodes the rows of a batch."""

    def __init__(self, options: ValueOptions) -> None:
        """Raises `OptionError` for a schema that can't be used, `PipelineError` without its package."""
        from barnabas.pipeline.decoding.arrow import pa

        self._recipe = DecoderRecipe.of(options)
        self._type: ArrowType = self._recipe.make().arrow_type
        self._flatten = options.flatten
        if self._flatten and not pa.types.is_struct(self._type):
            raise OptionError("flatten", "the schema's values have no fields to make columns of")

    def decoded(self, frame: DataFrame) -> DataFrame:
        """The rows with their decoded value, or the reason why it doesn't fit. Needs a column `value`."""
        from pyspark.sql.types import StringType

        if VALUE_COLUMN not in frame.columns:
            raise OptionError("columns", f"{VALUE_COLUMN} is needed to decode it")
        # Nullable, because values that fit become null here, and Spark relies on the schema.
        schema = all_nullable(frame.schema)
        schema = schema.add(_DECODED, type_from_arrow(self._type)).add(REASON_COLUMN, StringType())
        return map_in_arrow(frame, _DecodingTask(self._recipe), schema)

    def fitting(self, decoded: DataFrame) -> DataFrame:
        """The rows whose value fits, with the columns of the schema."""
        from pyspark.sql.functions import col

        others: list[Column] = [
            col(name) for name in decoded.columns if name not in (VALUE_COLUMN, _DECODED, REASON_COLUMN)
        ]
        values = self._value_columns([str(name) for name in decoded.columns])
        return decoded.where(col(REASON_COLUMN).isNull()).select(*others, *values)

    def failing(self, decoded: DataFrame) -> DataFrame:
        """The rows whose value doesn't fit: unchanged, with `reason`."""
        from pyspark.sql.functions import col

        return decoded.where(col(REASON_COLUMN).isNotNull()).drop(_DECODED)

    def _value_columns(self, names: list[str]) -> list[Column]:
        from pyspark.sql.functions import col

        if not self._flatten:
            return [col(_DECODED).alias(VALUE_COLUMN)]
        fields = [self._type.field(index).name for index in range(self._type.num_fields)]
        taken = {name.casefold() for name in names} - {VALUE_COLUMN, _DECODED, REASON_COLUMN}
        for field in fields:
            if field.casefold() in taken:
                raise OptionError(
                    "flatten", f"the value has a field {field!r}, and the record a column of that name"
                )
        return [col(_DECODED)[field].alias(field) for field in fields]


class _DecodingTask:
    """The work of each task: adds two columns to its batches."""

    def __init__(self, recipe: DecoderRecipe) -> None:
        self._recipe = recipe

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        decoder = self._recipe.make()
        for batch in batches:
            yield decode_batch(decoder, batch)


def decode_batch(decoder: Decoder, batch: RecordBatch) -> RecordBatch:
    """A batch with its decoded values, and the reasons why others don't fit; values that fit become null."""
    from barnabas.pipeline.decoding.arrow import pa

    index = batch.schema.get_field_index(VALUE_COLUMN)
    values: list[bytes | None] = batch.column(index).to_pylist()
    decoded, reasons = _decode_each(decoder, values)
    column = _as_array(decoded, reasons, decoder.arrow_type)
    left = [None if reason is None else value for value, reason in zip(values, reasons, strict=True)]
    columns = [*batch.columns, column, pa.array(reasons, pa.string())]
    columns[index] = pa.array(left, batch.schema.field(index).type)
    names = [*batch.schema.names, _DECODED, REASON_COLUMN]
    both: RecordBatch = pa.RecordBatch.from_arrays(columns, names)
    return both


def _decode_each(decoder: Decoder, values: list[bytes | None]) -> tuple[list[Any], list[str | None]]:
    decoded: list[Any] = [None] * len(values)
    reasons: list[str | None] = [None] * len(values)
    for index, value in enumerate(values):
        if value is None:
            continue
        try:
            decoded[index] = decoder.decode(value)
        except MemoryError:
            raise
        except ValueMisfit as error:
            reasons[index] = _reason(str(error))
        except Exception as error:
            reasons[index] = _reason(f"it cannot be decoded: {_described(error)}")
    return decoded, reasons


def _as_array(decoded: list[Any], reasons: list[str | None], kind: ArrowType) -> Any:
    """The values as an Arrow array. If one doesn't fit its column, they are tried one by one."""
    from barnabas.pipeline.decoding.arrow import pa

    try:
        return pa.array(decoded, kind)
    except MemoryError:
        raise
    except Exception:
        _take_out_misfits(decoded, reasons, kind)
    return pa.array(decoded, kind)


def _take_out_misfits(decoded: list[Any], reasons: list[str | None], kind: ArrowType) -> None:
    from barnabas.pipeline.decoding.arrow import pa

    for index, value in enumerate(decoded):
        try:
            pa.array([value], kind)
        except MemoryError:
            raise
        except Exception as error:
            decoded[index] = None
            reasons[index] = _reason(f"it has no place in the column: {_described(error)}")


def _described(error: Exception) -> str:
    return ": ".join(filter(None, (type(error).__name__, str(error))))


def _reason(text: str) -> str:
    """The text, cut to its limit. Lone surrogates, which JSON may have and no column accepts, are escaped."""
    return text[:REASON_CHARACTERS_MAX].encode(errors="backslashreplace").decode()
