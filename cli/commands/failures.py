"""Reports the failure of a command: one line on standard error, and an exit code."""

import argparse
import sys

from barnabas.cli.exit_codes import ExitCode


def report_error(message: str, exit_code: int, log_format: str = "console") -> int:
    """Print an error on standard error, as text or JSON; returns `exit_code`."""
    if log_format == "json":
        from barnabas.runtime.logging import get_logger

        get_logger("process").error(message)
    else:
        print(f"barnabas: {message}", file=sys.stderr)
    return exit_code


def report_directory_error(error: OSError, directory: str, failed: str, log_format: str = "console") -> int:
    """Report an error of the system, if possible with a remedy for the data directory; returns the exit code.

    `failed` is the beginning of the message without a remedy, such as "Cannot serve".
    """
    from barnabas.cli.process.directory_errors import explain, reason

    message = explain(error, directory) or f"{failed}: {reason(error)}."
    return report_error(message, ExitCode.FAILED, log_format)


def refuse_command_line(message: str) -> int:
    """Report a wrong command line as JSON; returns the exit code."""
    configure_logging(argparse.Namespace(log_format="json", log_level="info"))
    return report_error(message, ExitCode.USAGE, "json")


def configure_logging(options: argparse.Namespace) -> None:
    """Apply `--log-format` and `--log-level`."""
    from barnabas.runtime.logging import catch_everything_else, configure_logging

    configure_logging(options.log_format, options.log_level)
    if options.log_format == "json":
        catch_everything_else()
