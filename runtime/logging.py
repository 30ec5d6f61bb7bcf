"""Logging: one line per event, the field's words as keys, nothing per request at the default level.

Lines go to standard error, so that standard output keeps what a program may read (the line that tells the
address). The console form is for people, the JSON form for collectors. What libraries report through the
standard library's `logging` ends up in the same lines.
"""

import logging
import sys
import threading
from types import TracebackType
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


def catch_everything_else() -> None:
    """Log Python's warnings, and exceptions that nothing has caught: both would be printed as plain text."""
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda hook: _log_uncaught(
        hook.exc_type, hook.exc_value or hook.exc_type(), hook.exc_traceback
    )


def announce(log_format: LogFormat, event: str, **fields: str) -> None:
    """Print one line on standard output: text for people, and JSON in the form of the log's lines.

    `event` is a format string for the fields, as in "serves {address}".
    """
    if log_format == "console":
        print(event.format(**fields), flush=True)
        return
    logger = structlog.wrap_logger(
        structlog.WriteLogger(sys.stdout),
        processors=_processors("json", sys.stdout),
        wrapper_class=structlog.make_filtering_bound_logger("info"),
    )
    logger.info(event.format(**fields), subject="broker", **fields)


def _log_uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    get_logger("process").critical("uncaught exception", exc_info=(kind, error, traceback))


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
