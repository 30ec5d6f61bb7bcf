"""Fingerprints of a stream's batches, from its checkpoint.

Before Spark runs a batch it writes a file about it, `offsets/NUMBER`: where it ends, by the source's offsets,
and when it was made. A batch that is repeated is made from that file again; no other has one like it.
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
    """Those of the batches of one checkpoint. Called with a batch's number while the batch runs."""

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
