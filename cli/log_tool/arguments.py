"""The arguments of `barnabas log`, and the calls of its actions.

Exit codes: 0 if all is well, 1 if `verify` found a problem, 2 if a path cannot be read, the group to dump has
no state there, or the command line is wrong. This module imports nothing of the broker until a command runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Literal, assert_never

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.cli.log_tool.places import Place
    from barnabas.cli.printing import Printer

EXIT_WRONG = 1
EXIT_UNREADABLE = 2

_GROUPS_NAMED_MAX = 10
"""In the message about a group without state."""

_DESCRIPTION = """\
Inspect logs on the disk: those of a data directory, of one partition, or a single segment.
Nothing is written or locked: a broker may be running, and Apache Kafka may have written the logs. Only
drop-damaged and restore-topic-id write; stop the broker first.
"""
_DUMP = "print batches, records, indexes and the files beside them"
_DESCRIBE = "print the start and the end of each log, and the progress of each share group"
_VERIFY = "check logs, indexes and the files beside them for damage and contradictions"
_DROP = "remove damaged data from a partition of a coordinator's state, such as __consumer_offsets-12"
_RESTORE = "write the topic id of the metadata into the directory of a partition"
_EXAMPLES = """\
examples:
  barnabas log describe ./data                       all logs, and the progress of each share group
  barnabas log verify ./data                         check everything for damage
  barnabas log dump ./data/orders-0 --records        every batch and record of a partition
  barnabas log dump ./data/orders-0 --group workers  the state of a share group, change by change
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Fills the parser of `barnabas log`."""
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    dump = _described(actions.add_parser("dump", help=_DUMP), _DUMP)
    dump.add_argument("--records", action="store_true", help="the records of each batch, too")
    dump.add_argument("--indexes", action="store_true", help="the entries of each segment's indexes, too")
    dump.add_argument("--from-offset", type=int, metavar="N", help="only batches that reach N")
    dump.add_argument("--to-offset", type=int, metavar="N", help="only batches that begin at N or before")
    dump.add_argument("--group", metavar="ID", help="only the state of this share group")
    _described(actions.add_parser("describe", help=_DESCRIBE), _DESCRIBE)
    verify = _described(actions.add_parser("verify", help=_VERIFY), _VERIFY)
    verify.add_argument("--records", action="store_true", help="decode every record, which takes longer")
    _described(actions.add_parser("drop-damaged", help=_DROP), _DROP)
    _described(actions.add_parser("restore-topic-id", help=_RESTORE), _RESTORE)


def _described(parser: argparse.ArgumentParser, purpose: str) -> argparse.ArgumentParser:
    """Adds the description and the arguments that all actions have."""
    parser.description = f"{purpose[0].upper()}{purpose[1:]}."
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a data directory, a partition's directory or a .log file"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the action; returns the exit code."""
    from barnabas.cli.log_tool.files import UnreadableError
    from barnabas.storage.errors import DirectoryLocked

    try:
        return _run_action(options)
    except (UnreadableError, DirectoryLocked) as error:
        message = str(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader ended, which is no error
        return 0
    except OSError as error:
        message = f"{error.filename}: {error.strerror}."
    print(f"barnabas: {message}", file=sys.stderr)
    return EXIT_UNREADABLE


def _run_action(options: argparse.Namespace) -> int:
    from barnabas.cli.log_tool.describe import describe
    from barnabas.cli.log_tool.drop_damaged import drop_damaged
    from barnabas.cli.log_tool.places import find_place
    from barnabas.cli.log_tool.topic_ids import restore_topic_id
    from barnabas.cli.log_tool.verify import verify
    from barnabas.cli.printing import Printer
    from barnabas.storage.filesystem import RealFileSystem

    action: Literal["dump", "describe", "verify", "drop-damaged", "restore-topic-id"] = options.action
    places = [find_place(path) for path in options.paths]
    printer = Printer(as_json=options.json)
    match action:
        case "dump":
            _dump(options, places, printer)
        case "describe":
            for place in places:
                describe(place, printer)
        case "verify":
            findings = [verify(place, printer, with_records=options.records) for place in places]
            return EXIT_WRONG if any(findings) else 0
        case "drop-damaged":
            for place in places:
                drop_damaged(place, printer, RealFileSystem())
        case "restore-topic-id":
            for place in places:
                restore_topic_id(place, printer, RealFileSystem())
        case _:
            assert_never(action)
    return 0


def _dump(options: argparse.Namespace, places: Sequence[Place], printer: Printer) -> None:
    from barnabas.cli.log_tool.dump import DumpOptions, dump

    chosen = DumpOptions(
        options.records, options.indexes, options.from_offset, options.to_offset, options.group
    )
    groups: set[str] = set()
    for place in places:
        groups |= dump(place, printer, chosen)
    if options.group is not None:
        _check_group(options.group, groups)


def _check_group(group_id: str, groups: set[str]) -> None:
    """Raises UnreadableError if the group is not among `groups`, which have state at the paths."""
    from barnabas.cli.log_tool.files import UnreadableError
    from barnabas.protocol.nearest_name import nearest_first

    if group_id in groups:
        return
    if not groups:
        raise UnreadableError(f"There is no state of group {group_id}, and none of any other share group.")
    nearest = nearest_first(group_id, groups)
    others = len(nearest) - _GROUPS_NAMED_MAX
    named = ", ".join(nearest[:_GROUPS_NAMED_MAX]) + (f" and {others} others" if others > 0 else "")
    raise UnreadableError(f"There is no state of group {group_id}. There is state of {named}.")
