"""`barnabas produce`: writes records from lines or files (`record_streams.producing`)."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final

from barnabas.cli.commands.argument_types import number_from
from barnabas.cli.commands.connecting import add_connection, add_json, run_client
from barnabas.cli.commands.failures import report_error
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.record_streams.producing import Given
    from barnabas.cli.target import Target

_DESCRIPTION: Final = """\
Write records to a topic: each line of standard input or of files is the value of a record. Works with Apache
Kafka, too.
"""
_EXAMPLES: Final = """\
examples:
  echo hello | barnabas produce orders
  barnabas produce orders --key-separator : keyed-lines.txt
  barnabas produce images --whole --header type=png picture.png
  barnabas consume orders --json | barnabas produce copies --from-json
"""
_COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("files", metavar="FILE", nargs="*", help="standard input by default, or for -")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--key-separator", metavar="TEXT", help="the part of a line before this text is the key"
    )
    forms.add_argument(
        "--from-json",
        action="store_true",
        help="each line is an object with value, key, headers, partition and timestamp_ms",
    )
    forms.add_argument("--whole", action="store_true", help="each file is one record")
    parser.add_argument("--key", metavar="TEXT", help="the key of all records")
    parser.add_argument(
        "--header",
        metavar="NAME=VALUE",
        dest="headers",
        type=_header,
        action="append",
        default=[],
        help="a header of all records; may be repeated",
    )
    parser.add_argument(
        "--partition", metavar="N", type=number_from(0), help="the partition of all records; else by the key"
    )
    parser.add_argument("--compression", choices=_COMPRESSIONS, default="none", help="none by default")
    add_json(parser)
    add_connection(parser)


def run(options: argparse.Namespace) -> int:
    return run_client(options, lambda target, printer: _produce(options, target, printer))


async def _produce(options: argparse.Namespace, target: Target, printer: Printer) -> int:
    from barnabas.cli.record_streams.input_files import STANDARD_INPUT, Form, read_records
    from barnabas.cli.record_streams.producing import produce
    from barnabas.cli.record_streams.record_input import InputError

    separator = None if options.key_separator is None else os.fsencode(options.key_separator)
    if separator == b"":
        return report_error("--key-separator is empty.", ExitCode.USAGE)
    form = Form(options.from_json, separator, options.whole)
    paths = options.files or [STANDARD_INPUT]
    total = len(paths) if options.whole else None
    try:
        await produce(
            target,
            printer,
            options.topic,
            read_records(paths, form),
            _given(options),
            compression=options.compression,
            total=total,
        )
    except InputError as error:
        return report_error(f"{str(error)[0].upper()}{str(error)[1:]}.", ExitCode.FAILED)
    except OSError as error:
        if error.filename is None:
            raise
        return report_error(f"{error.filename} cannot be read: {error.strerror}.", ExitCode.FAILED)
    return ExitCode.DONE


def _given(options: argparse.Namespace) -> Given:
    from barnabas.cli.record_streams.producing import Given

    key = None if options.key is None else os.fsencode(options.key)
    return Given(key, options.headers, options.partition)


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as trace=1")
    return name, os.fsencode(value)
