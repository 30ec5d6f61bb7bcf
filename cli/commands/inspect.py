"""`barnabas inspect`: the states of a share group's records, range by range (`inspecting`)."""

from __future__ import annotations

import argparse
from typing import Final

from barnabas.cli.commands.inspecting import add_inspection, run_inspection

_DESCRIPTION: Final = """\
Show the state, holder, lock deadline, delivery count and last change of the records of a share group, range
by range. Only a Barnabas broker can answer.
"""
_EXAMPLES: Final = """\
examples:
  barnabas inspect workers                             all partitions that the group reads
  barnabas inspect workers orders:0 --state acquired   the records that members hold
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_inspection(parser, "ranges")


def run(options: argparse.Namespace) -> int:
    return run_inspection(options, with_records=False)
