"""`barnabas browse`: each record of a share group with its content beside its state (`inspecting`)."""

from __future__ import annotations

import argparse
from typing import Final

from barnabas.cli.commands.inspecting import add_inspection, run_inspection

_DESCRIPTION: Final = """\
Show each record of a share group with its key and value beside its state. Nothing is acquired or changed.
Only a Barnabas broker can answer.
"""
_EXAMPLES: Final = """\
examples:
  barnabas browse workers orders:0 --from-offset 100   from this offset on
  barnabas browse workers --state archived --json      the records that the group has given up
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_inspection(parser, "records")


def run(options: argparse.Namespace) -> int:
    return run_inspection(options, with_records=True)
