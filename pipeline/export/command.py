"""The command `barnabas pipeline export`: its arguments and its output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.pipeline.cli.arguments import (
    add_common_arguments,
    add_server_arguments,
    add_spark_arguments,
    names,
    server_options,
)
from barnabas.pipeline.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.export.directory import ExportDirectory
    from barnabas.pipeline.export.manifest import Manifest
    from barnabas.pipeline.export.planning import ExportRequest

_ISOLATIONS = ("read_committed", "read_uncommitted")
_SLICE_OFFSETS = 500_000


def add_arguments(parser: ArgumentParser) -> None:
    """Fills the parser of `barnabas pipeline export`."""
    add_server_arguments(parser)
    parser.add_argument("--topics", metavar="NAME,...", type=names, required=True, help="topics to export")
    parser.add_argument(
        "--to", metavar="DIR", required=True, help="the target: a path, or a URI such as s3://..."
    )
    parser.add_argument(
        "--groups",
        metavar="ID,...",
        type=names,
        help="groups to export (default: all that have a position in the topics)",
    )
    parser.add_argument(
        "--data-dir",
        metavar="PATH",
        dest="data_directories",
        action="append",
        default=[],
        help="the broker's data directory, which has the exact state of share groups",
    )
    parser.add_argument(
        "--from-logs",
        action="store_true",
        help="read the records, too, from the data directories and not from the broker",
    )
    parser.add_argument(
        "--isolation",
        choices=_ISOLATIONS,
        default=_ISOLATIONS[0],
        help="whether records of open and aborted transactions are left out (the default)",
    )
    parser.add_argument(
        "--slice-offsets",
        metavar="N",
        type=int,
        default=_SLICE_OFFSETS,
        help=f"offsets in one file (default: {_SLICE_OFFSETS})",
    )
    add_spark_arguments(parser)
    add_common_arguments(parser)


def run(options: Namespace) -> int:
    """Exports, or prints the plan with `--dry-run`; returns the exit code."""
    from barnabas.pipeline.cli.connectivity import check_connectivity
    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.cli.session import open_session
    from barnabas.pipeline.cli.task_progress import task_progress
    from barnabas.pipeline.export.directory import ExportDirectory
    from barnabas.pipeline.export.exporting import export_topics, find_or_make_plan

    console = Console.of(options)
    request = _request(options)
    directory = ExportDirectory(options.to)
    check_connectivity(request.servers, request.topics)
    plan = find_or_make_plan(directory, request)
    if options.dry_run:
        _report_plan(console, request, directory, plan)
        return 0
    with open_session(options, "export") as spark, task_progress(spark, console, "Exporting"):
        manifest = export_topics(spark, request, options.to)
    for sentence in manifest.left_out:
        console.note(sentence)
    console.result(_summary(manifest, options.to), _lines(manifest, options.to))
    return 0


def _request(options: Namespace) -> ExportRequest:
    from barnabas.client.cluster.topics import Isolation
    from barnabas.pipeline.export.planning import ExportRequest
    from barnabas.pipeline.options import Options
    from barnabas.pipeline.servers import take_servers

    given = Options(server_options(options))
    servers = take_servers(given)
    given.finish()
    if options.slice_offsets < 1:
        raise OptionError("--slice-offsets", f"{options.slice_offsets} is not 1 or more")
    if options.from_logs and not options.data_directories:
        raise OptionError("--from-logs", "needs a --data-dir")
    return ExportRequest(
        servers=servers,
        topics=options.topics,
        groups=options.groups,
        data_directories=tuple(options.data_directories),
        from_logs=options.from_logs,
        isolation=Isolation[options.isolation.upper()],
        slice_offsets=options.slice_offsets,
    )


def _report_plan(
    console: Console, request: ExportRequest, directory: ExportDirectory, plan: Manifest
) -> None:
    """Prints the plan. Writes nothing, and does not start Spark."""
    from barnabas.pipeline.export.exporting import estimate_bytes, missing_slices

    missing_count = len(missing_slices(request, directory, plan))
    sizes = estimate_bytes(request, plan)
    for sentence in plan.left_out:
        console.note(sentence)
    topics = {
        topic.name: {
            "partitions": len(topic.partitions),
            "offsets": sum(partition.end_offset - partition.start_offset for partition in topic.partitions),
            "estimated_bytes": sizes[topic.name],
        }
        for topic in plan.topics
    }
    values = {"dry_run": True, "topics": topics, "slices": missing_count, **_groups(plan)}
    console.result(values, _plan_lines(plan, sizes, missing_count, directory.location))


def _plan_lines(plan: Manifest, sizes: dict[str, int], missing_count: int, location: str) -> Iterator[str]:
    from barnabas.protocol.counted import counted

    for topic in plan.topics:
        count = sum(partition.end_offset - partition.start_offset for partition in topic.partitions)
        yield (
            f"{topic.name}: {counted(len(topic.partitions), 'partition')}, at most "
            f"{counted(count, 'record')}, about {counted(sizes[topic.name], 'byte')}, "
            f"{counted(len(topic.settings), 'setting')}"
        )
    yield from _group_lines(plan)
    yield f"{counted(missing_count, 'file')} would be written to {location}"


def _summary(manifest: Manifest, location: str) -> dict[str, object]:
    return {
        "directory": location,
        "records": manifest.record_count,
        "bytes": manifest.size_bytes,
        "topics": {
            topic.name: {str(partition.partition): partition.record_count for partition in topic.partitions}
            for topic in manifest.topics
        },
        **_groups(manifest),
        "left_out": list(manifest.left_out),
    }


def _groups(manifest: Manifest) -> dict[str, object]:
    return {
        "share_groups": [group.group_id for group in manifest.share_groups],
        "consumer_groups": [group.group_id for group in manifest.consumer_groups],
    }


def _lines(manifest: Manifest, location: str) -> Iterator[str]:
    from barnabas.protocol.counted import counted

    for topic in manifest.topics:
        count = sum(partition.record_count for partition in topic.partitions)
        yield f"{topic.name}: {counted(count, 'record')} of {counted(len(topic.partitions), 'partition')}"
    yield from _group_lines(manifest)
    yield f"{counted(manifest.record_count, 'record')}, {counted(manifest.size_bytes, 'byte')} in {location}"


def _group_lines(manifest: Manifest) -> Iterator[str]:
    from barnabas.protocol.counted import counted

    for group in manifest.share_groups:
        is_exact = all(position.in_flight is not None for position in group.positions)
        told = "with all records in flight" if is_exact else "by their start offsets"
        yield f"share group {group.group_id}: {counted(len(group.positions), 'partition')}, {told}"
    for ordinary in manifest.consumer_groups:
        yield f"consumer group {ordinary.group_id}: {counted(len(ordinary.offsets), 'committed offset')}"
