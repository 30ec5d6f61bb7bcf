"""Arguments that several commands have, with one name and one meaning."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

RESUME: Final = "The same command goes on where this one stopped."


def add_common_arguments(parser: ArgumentParser, *, resume: str = RESUME) -> None:
    """`--json`, `--quiet` and `--dry-run`; `resume` tells how to go on after the command was stopped."""
    shown = parser.add_argument_group("output")
    shown.add_argument("--json", action="store_true", help="print the result as one JSON object")
    shown.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--dry-run", action="store_true", help="show the planned work, and change nothing")
    parser.set_defaults(resume=resume)


def add_spark_arguments(parser: ArgumentParser) -> None:
    """`--master` and `--conf`, as `spark-submit` has them, and `--log-file`."""
    spark = parser.add_argument_group("Spark")
    spark.add_argument(
        "--master", metavar="URL", help="where Spark runs (default: every core of this machine, local[*,4])"
    )
    spark.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="one setting of Spark; wins over the defaults here",
    )
    spark.add_argument(
        "--log-file",
        metavar="FILE",
        help="where Spark's own log goes (default: a temporary file, kept only if Spark fails)",
    )


def add_server_arguments(parser: ArgumentParser, *, required: bool = True) -> None:
    """`--servers`, `--option` and `--options-file`: the brokers' addresses and the security settings."""
    servers = parser.add_argument_group("broker")
    servers.add_argument(
        "--servers", metavar="HOST:PORT,...", required=required, help="brokers to begin with"
    )
    servers.add_argument(
        "--option",
        metavar="NAME=VALUE",
        dest="server_options",
        action="append",
        default=[],
        help="one option of the source or sink, such as kafka.security.protocol=SSL",
    )
    servers.add_argument(
        "--options-file",
        metavar="FILE",
        help="such options, one on each line; use it for passwords, because every user sees a command line",
    )


def server_options(options: Namespace) -> dict[str, str]:
    """`servers` and the other options of the formats; `--option` wins over `--options-file`.

    Raises `OptionError`, and OSError for a file that cannot be read.
    """
    given = _in_file(options.options_file) | named_values("--option", options.server_options)
    return given if options.servers is None else {"servers": options.servers, **given}


def names(text: str) -> tuple[str, ...]:
    """The `type` of arguments of the form NAME,NAME,...: the names, without doubles."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise ArgumentTypeError(f"{text!r} is not names with commas between them")
    return tuple(dict.fromkeys(found))


def named_values(argument: str, given: Iterable[str]) -> dict[str, str]:
    """The values of an argument of the form NAME=VALUE, by name. Raises `OptionError`, which names it."""
    values: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise OptionError(argument, f"{text!r} is not NAME=VALUE")
        values[name.strip()] = value
    return values


def _in_file(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    lines = (line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
    return named_values("--options-file", (line for line in lines if line and not line.startswith("#")))


@contextmanager
def named_as_arguments(names: dict[str, str]) -> Generator[None]:
    """An `OptionError` about one of these fields becomes one about the argument that sets the field."""
    try:
        yield
    except OptionError as error:
        if error.option not in names:
            raise
        raise OptionError(names[error.option], error.reason) from error
