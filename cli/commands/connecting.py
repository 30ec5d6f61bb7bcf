"""The options of every command that asks a broker, and the run of such a command.

Errors of the client become one line on standard error and an exit code (`exit_codes`). The client is loaded
when the command runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.commands.failures import report_error
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target
    from barnabas.client.errors import BrokerError, ConsumerError
    from barnabas.client.network.security import Security

BOOTSTRAP_VARIABLE: Final = "BARNABAS_CLIENT_BOOTSTRAP"
SECURITY_VARIABLE: Final = "BARNABAS_CLIENT_SECURITY"
DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
ONLY_BARNABAS: Final = "Only Barnabas has this API."


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Add `--bootstrap` and `--security`."""
    connection = parser.add_argument_group("connection")
    connection.add_argument(
        "--bootstrap",
        metavar="HOST:PORT,...",
        help=f"brokers to ask (default: ${BOOTSTRAP_VARIABLE}, or {DEFAULT_BOOTSTRAP})",
    )
    connection.add_argument(
        "--security",
        metavar="FILE",
        help="a file with settings of TLS and SASL, such as security.protocol=SASL_SSL, one on each line "
        f"(default: ${SECURITY_VARIABLE}, or no encryption)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def run_client(
    options: argparse.Namespace,
    work: Callable[[Target, Printer], Coroutine[Any, Any, int]],
    *,
    unsupported: str = "",
) -> int:
    """Run the work of a command in an event loop; returns the exit code.

    `unsupported` is a sentence about brokers that do not know the request.
    """
    import logging
    from asyncio import CancelledError
    from asyncio import run as run_in_loop

    from barnabas.protocol.lean_import import import_kio_without_hypothesis

    import_kio_without_hypothesis()
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import NotFoundError, RefusedError
    from barnabas.client.errors import ConsumerError

    try:
        target = target_of(options)
    except ValueError as error:
        return report_error(f"{error}.", ExitCode.USAGE)
    # The client logs errors that it also raises; each is printed once.
    logging.getLogger("barnabas.client").addHandler(logging.NullHandler())
    try:
        return run_in_loop(_stoppable(work(target, Printer(as_json=options.json))))
    except CancelledError:
        return ExitCode.STOPPED
    except ConsumerError as error:
        return _report_client_error(error, unsupported)
    except NotFoundError as error:
        return report_error(_sentence(str(error)), ExitCode.NOT_FOUND)
    except RefusedError as error:
        return report_error(_sentence(str(error)), ExitCode.REFUSED)
    except KeyboardInterrupt:
        return ExitCode.STOPPED
    except BrokenPipeError:
        return exit_on_broken_pipe()


async def _stoppable(work: Coroutine[Any, Any, int]) -> int:
    """Cancel the work at SIGTERM, so that it closes its consumers; SIGINT does so by itself."""
    import asyncio
    import signal
    import threading

    task = asyncio.current_task()
    if task is not None and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def exit_on_broken_pipe() -> int:
    """The program that reads the output has ended; returns the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes it at its end
    return ExitCode.STOPPED


def target_of(options: argparse.Namespace) -> Target:
    """The brokers that the options and the environment name.

    Raises ValueError, whose message begins with the argument.
    """
    from barnabas.cli.target import Target
    from barnabas.client.errors import MisuseError
    from barnabas.client.network.address import parse_bootstrap

    bootstrap, origin = _given(options.bootstrap, "--bootstrap", BOOTSTRAP_VARIABLE)
    bootstrap = DEFAULT_BOOTSTRAP if bootstrap is None else bootstrap
    try:
        parse_bootstrap(bootstrap)
    except MisuseError as error:
        raise ValueError(f"{origin}: {str(error).removesuffix('.')}") from error
    path, origin = _given(options.security, "--security", SECURITY_VARIABLE)
    return Target(bootstrap, _security(path, origin), f"barnabas-{options.command}")


def _given(argument: str | None, name: str, variable: str) -> tuple[str | None, str]:
    """The value of the argument or of the environment, and the name of its origin for messages."""
    if argument is not None:
        return argument, name
    return os.environ.get(variable) or None, variable


def _security(path: str | None, origin: str) -> Security:
    """The settings in a file. Raises ValueError, whose message begins with the argument."""
    from barnabas.client.network.security import PLAINTEXT, parse_security

    if path is None:
        return PLAINTEXT
    from barnabas.broker.config.errors import ConfigError
    from barnabas.broker.config.sources import read_file
    from barnabas.client.errors import SecurityOptionError

    try:
        return parse_security(read_file(path))
    except (ConfigError, SecurityOptionError) as error:
        raise ValueError(f"{origin}: {str(error).removesuffix('.')}") from error


def _report_client_error(error: ConsumerError, unsupported: str) -> int:
    from barnabas.client.errors import (
        AcknowledgeError,
        BrokerError,
        BrokerUnavailableError,
        MisuseError,
        ProduceError,
        RecordsGoneError,
        SecurityError,
        TopicGoneError,
        UnknownTopicError,
        UnsupportedBrokerError,
    )

    match error:
        case UnsupportedBrokerError():
            message = _sentence(error.message or error.code.name.upper())
            return report_error(f"{message} {unsupported}".rstrip(), ExitCode.REFUSED)
        case BrokerError():
            return report_error(_sentence(_refusal(error)), ExitCode.REFUSED)
        case ProduceError() | AcknowledgeError():
            return report_error(_sentence(str(error)), ExitCode.REFUSED)
        case BrokerUnavailableError() | SecurityError():
            return report_error(_sentence(str(error)), ExitCode.NOT_CONNECTED)
        case UnknownTopicError() | TopicGoneError() | RecordsGoneError():
            return report_error(_sentence(str(error)), ExitCode.NOT_FOUND)
        case MisuseError():
            return report_error(_sentence(str(error)), ExitCode.USAGE)
        case _:
            return report_error(_sentence(str(error)), ExitCode.FAILED)


def _refusal(error: BrokerError) -> str:
    """The broker's explanation with the name of its error code, by which users look for help."""
    return error.code.name.upper() if error.message is None else f"{error.code.name.upper()}: {error.message}"


def _sentence(message: str) -> str:
    """The message with one mark at its end."""
    return message if message.endswith(("?", ".")) else f"{message}."
