"""Logging: one line per event, the field's words as keys, nothing per request at the default level.

Lines go to standard error, so that standard output keeps what a program may read (the line that tells the
address). The console form is for people, the JSON form for collectors. What libraries report through the
standard library's `logging` ends up in the same lines.
"""

import logging
import sys
from typing import Literal, TextIO, cast

import structlog
from structlog.types import FilteringBoundLogger, Processor

LogFormat = Literal["console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


def get_logger(subject: str) -> FilteringBoundLogger:
    """The logger of one part of the broker; every line of it carries `subject`."""
    return cast("FilteringBoundLogger", structlog.get_logger(subject=subject))


def configure_logging(log_format: LogFormat, level: LogLevel, stream: TextIO | None = None) -> None:
    """Send every line of this process to `stream` (standard error) in the given form.

    Logging is the one thing that a process has once, whatever number of brokers runs in it; the command line
    calls this, a program that embeds a broker configures structlog as it likes.
    """
    output = stream if stream is not None else sys.stderr
    structlog.configure(
        processors=_processors(log_format, output),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(output),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[_LibraryHandler()], level=level.upper(), force=True)


def _processors(log_format: LogFormat, output: TextIO) -> list[Processor]:
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if log_format == "json":
        return [*shared, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    renderer = structlog.dev.ConsoleRenderer(
        colors=output.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    return [*shared, renderer]


class _LibraryHandler(logging.Handler):
    """Passes records of the standard library's loggers (asyncio's for one) on to ours."""

    def emit(self, record: logging.LogRecord) -> None:
        log = get_logger(record.name)
        log.log(record.levelno, record.getMessage(), exc_info=record.exc_info)
