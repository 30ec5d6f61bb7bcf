"""Fingerprints of a stream's batches, from its checkpoint.

Before Spark runs a batch it writes the file `offsets/NUMBER`, with the batch's end by the source's offsets
and the time. Spark makes a repeated batch from that file; no other batch has an equal file.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BYTES: Final = 8


class CheckpointFingerprints:
    """The fingerprints of one checkpoint. Call it with a batch's number while the batch runs."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        """Raises `PipelineError` if Hadoop knows no such filesystem."""
        self._files = HadoopFiles(spark, checkpoint)

    def __call__(self, batch_id: int) -> int:
        """See `Batch.fingerprint`. Raises `OptionError` if the checkpoint has no such batch."""
        path = f"offsets/{batch_id}"
        try:
            text = self._files.read_text(path)
        except FileNotFoundError as error:
            raise OptionError(
                "checkpoint",
                f"{self._files.uri(path)} is not there: name the checkpoint of the stream itself",
            ) from error
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:_BYTES]) >> 1
