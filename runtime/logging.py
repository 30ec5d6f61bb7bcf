"""Logging with structlog: one line per event, the field's words as keys, no line per request by default.

Lines go to standard error. Standard output keeps the one line that a program may read: the broker's address.
The console format is for people, the JSON format for collectors. Errors of the event loop, Python's warnings
and uncaught exceptions become lines of the same format. See docs/decisions/0018-two-ways-to-log.md.
"""

import asyncio
import logging
import sys
import threading
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Literal, TextIO, cast

import structlog
from structlog.types import FilteringBoundLogger, Processor

LogFormat = Literal["console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


def get_logger(subject: str) -> FilteringBoundLogger:
    """The logger of one part of the broker; each of its lines has the field `subject`."""
    return cast("FilteringBoundLogger", structlog.get_logger(subject=subject))


def configure_logging(log_format: LogFormat, level: LogLevel, stream: TextIO | None = None) -> None:
    """Send every line of this process to `stream` (by default standard error) in the given format.

    A process has one log, even if it runs several brokers. The command line calls this function; a program
    that embeds a broker configures structlog itself.
    """
    output = stream if stream is not None else sys.stderr
    structlog.configure(
        processors=_processors(log_format, output),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(output),
        cache_logger_on_first_use=True,
    )


def log_errors_of(loop: asyncio.AbstractEventLoop) -> None:
    """Log the errors that `loop` reports, such as "Task exception was never retrieved", as lines of ours.

    The standard library's root logger gets a handler that writes nothing. Without any handler, Python prints
    the warnings and errors of asyncio and other libraries to standard error as plain text, between our lines.
    """
    loop.set_exception_handler(_log_loop_error)
    logging.basicConfig(handlers=[logging.NullHandler()], force=True)


def catch_everything_else() -> None:
    """Log Python's warnings and uncaught exceptions, which Python would print as plain text."""
    warnings.showwarning = _log_warning
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread


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


def _log_loop_error(_loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
    """A loop's exception handler. `context` names the task, future, handle or transport of the error."""
    fields = {key: repr(value) for key, value in context.items() if key not in ("message", "exception")}
    message = context.get("message") or "unhandled exception in the event loop"
    get_logger("asyncio").bind(**fields).error(str(message), exc_info=context.get("exception"))


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Replaces `warnings.showwarning`, whose arguments these are."""
    place = f"{filename}:{lineno}"
    get_logger("process").warning(str(message), category=category.__name__, place=place)


def _log_uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    get_logger("process").critical("uncaught exception", exc_info=(kind, error, traceback))


def _log_uncaught_in_thread(hook: threading.ExceptHookArgs) -> None:
    _log_uncaught(hook.exc_type, hook.exc_value or hook.exc_type(), hook.exc_traceback)


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
