"""`barnabas log verify`: checks that logs, their share state, indexes and other files are valid.

The segments are checked first (`segment_checks`), then the share state in them (`share_history`), then the
files beside them (`file_checks`). A state that a running broker or a killed one can leave is a note, not a
problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import UUID

from barnabas.cli.log_tool.control_records import runs_of
from barnabas.cli.log_tool.file_checks import (
    check_data_directory,
    check_leader_epochs,
    check_partition_files,
)
from barnabas.cli.log_tool.files import UnreadableError
from barnabas.cli.log_tool.findings import Finding
from barnabas.cli.log_tool.places import PartitionFiles, Place
from barnabas.cli.log_tool.segment_checks import check_segment
from barnabas.cli.log_tool.share_history import ShareHistory
from barnabas.cli.log_tool.topic_ids import read_topic_ids
from barnabas.cli.log_tool.verification import LogVerification
from barnabas.cli.printing import Printer
from barnabas.protocol.counted import counted


def verify(place: Place, printer: Printer, *, with_records: bool) -> int:
    """Prints the findings; returns the number of problems. Raises OSError."""
    problem_count = note_count = batch_count = 0
    for finding in _check_place(place, with_records=with_records):
        if isinstance(finding, LogVerification):
            batch_count += finding.batch_count
            continue
        problem_count += finding.is_problem
        note_count += not finding.is_problem
        if printer.as_json:
            printer.row(finding.as_row())
        else:
            printer.text(finding.as_line())
    _print_summary(place, printer, batch_count, problem_count, note_count)
    return problem_count


def _print_summary(
    place: Place, printer: Printer, batch_count: int, problem_count: int, note_count: int
) -> None:
    partition_count = len(place.partitions)
    counts = {"problem_count": problem_count, "note_count": note_count}
    if printer.as_json:
        printer.row(
            {"type": "summary", "partition_count": partition_count, "batch_count": batch_count, **counts}
        )
        return
    outcome = f"{counted(problem_count, 'problem')} found" if problem_count else "all is well"
    notes = f", {counted(note_count, 'note')}" if note_count else ""
    looked_at = f"{counted(partition_count, 'partition')}, {counted(batch_count, 'batch', 'batches')}"
    printer.text(f"{looked_at}: {outcome}{notes}")


def _check_place(place: Place, *, with_records: bool) -> Iterator[Finding | LogVerification]:
    """The findings, and each log after it is read."""
    logs: dict[tuple[str, int], LogVerification] = {}
    topic_ids = _topic_ids(place)
    for partition in place.partitions:
        epochs, findings = check_leader_epochs(partition)
        yield from findings
        log = LogVerification(partition, epochs, with_records)
        yield from _check_log(log, topic_ids)
        yield log
        if partition.key is not None:
            logs[partition.key] = log
    if place.data_directory is not None:
        yield from check_data_directory(place.data_directory, logs)


def _topic_ids(place: Place) -> Mapping[str, UUID]:
    """The topic ids in the metadata; empty if they cannot be read, for which verify has other findings."""
    try:
        return read_topic_ids(place.data_directory or place.partitions[0].path.parent)
    except UnreadableError:
        return {}


def _check_log(log: LogVerification, topic_ids: Mapping[str, UUID]) -> Iterator[Finding]:
    for segment in log.partition.segments:
        yield from check_segment(segment, log)
    yield from _check_share_state(log)
    yield from check_partition_files(log, topic_ids)


def _check_share_state(log: LogVerification) -> Iterator[Finding]:
    history = ShareHistory(runs_of(found.control for found in log.controls))
    for found in log.controls:
        if found.control.record is not None:
            record = found.control.record
            for message in history.take(found.control.offset, record, found.control.size_bytes):
                yield Finding(
                    found.file, f"group {record.group_id!r}: {message}", found.position, found.control.offset
                )
    high_watermark = max(log.last_data_offset + 1, _log_start_offset(log.partition))
    may_be_cut = _log_start_offset(log.partition) > 0 or any(
        found.control.record is None for found in log.controls
    )
    for group_id, group in history.groups.items():
        name, whose = log.partition.path.name, f"group {group_id!r}: "
        if group.orphans and (group.image is None or not may_be_cut):
            yield Finding(name, f"{whose}the record at {group.orphans[0]} follows no checkpoint")
        if group.image is not None and group.is_live and group.image.start_offset > high_watermark:
            beyond = (
                f"its start offset {group.image.start_offset} is beyond the high watermark {high_watermark}"
            )
            # An administrator may set it there with a checkpoint; acknowledgements cannot move it there.
            yield Finding(name, whose + beyond, is_problem=group.image.delta_count > 0)


def _log_start_offset(partition: PartitionFiles) -> int:
    first_offset = partition.segments[0].base_offset if partition.segments else 0
    return max(first_offset, partition.log_start_offset or 0)
