"""The errors of a data directory; each message begins with the file or folder."""

from __future__ import annotations

from barnabas.pipeline.errors import PipelineError


class LogFileError(PipelineError):
    """A file or folder is missing, damaged, or not of the expected kind."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type[LogFileError], tuple[str, str]]:
        """Spark pickles errors between processes: this one is made again from its arguments."""
        return (type(self), (self.path, self.reason))


class CorruptLog(LogFileError):  # noqa: N818  named as the condition
    """Bytes of a segment are not the batches that were written to it."""


class SegmentChanged(LogFileError):  # noqa: N818  named as the condition
    """A segment was removed, cut or rewritten after the query was planned. The query can be run again."""
