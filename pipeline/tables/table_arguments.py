"""The arguments of the commands that name a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.pipeline.cli.arguments import named_values
from barnabas.pipeline.tables.options import TABLE_FORMATS, TableOptions

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_table_arguments(parser: ArgumentParser, *, required: bool = True) -> None:
    """`--table`, `--format` and `--storage`."""
    table = parser.add_argument_group("table")
    table.add_argument(
        "--table",
        metavar="LOCATION",
        required=required,
        help="its path or URI; for Iceberg its name in the catalog, such as sales.orders",
    )
    table.add_argument("--format", choices=TABLE_FORMATS, default=TABLE_FORMATS[0], help="(default: parquet)")
    table.add_argument(
        "--storage",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="one setting of Delta Lake's object store or of Iceberg's catalog",
    )


def table_options(options: Namespace, location: str, partition_by: list[str]) -> TableOptions:
    """The options of a table, in the format of `--format`. Raises `OptionError`."""
    return TableOptions(
        location=location,
        format=options.format,
        partition_by=partition_by,
        storage=named_values("--storage", options.storage),
    )
