"""The command `barnabas pipeline restore`: its arguments and its output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING

from barnabas.pipeline.cli.arguments import (
    add_common_arguments,
    add_server_arguments,
    add_spark_arguments,
    server_options,
)

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.export.restore_state import RestoreState
    from barnabas.pipeline.export.restoring import RestorePlan, RestoreReport, RestoreRequest
    from barnabas.pipeline.servers import Servers

_LOOK_SECONDS = 2.0


def add_arguments(parser: ArgumentParser) -> None:
    """Fills the parser of `barnabas pipeline restore`."""
    parser.add_argument(
        "--from", metavar="DIR", dest="source", required=True, help="the exported directory: a path or a URI"
    )
    add_server_arguments(parser)
    parser.add_argument(
        "--append",
        action="store_true",
        help="write behind existing records of a topic, which the groups must have read there",
    )
    parser.add_argument(
        "--replication-factor",
        metavar="N",
        type=int,
        default=-1,
        help="of topics that are made (default: the broker's own)",
    )
    add_spark_arguments(parser)
    add_common_arguments(parser)


def run(options: Namespace) -> int:
    """Restores, or prints the plan with `--dry-run`; returns the exit code."""
    from barnabas.pipeline.cli.connectivity import check_connectivity
    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.cli.session import open_session
    from barnabas.pipeline.export.restoring import plan_restore, restore_topics

    console = Console.of(options)
    request = _request(options)
    check_connectivity(request.servers)
    plan = plan_restore(request, options.source)
    if options.dry_run:
        console.result(_planned(plan), _plan_lines(plan))
        return 0
    shown = _ShownArrivals(console, request.servers, plan.manifest.record_count)
    with open_session(options, "restore") as spark:
        report = restore_topics(spark, request, options.source, shown)
    for sentence in report.notes:
        console.note(sentence)
    console.result(_summary(report), _lines(report))
    return 0


class _ShownArrivals:
    """Shows how many records have arrived, while a restore runs."""

    def __init__(self, console: Console, servers: Servers, total: int) -> None:
        self._console = console
        self._servers = servers
        self._total = total
        self._counted = 0

    def __call__(self, state: RestoreState) -> AbstractContextManager[None]:
        from barnabas.pipeline.cli.task_progress import polled_progress

        look = partial(self._count, state)
        return polled_progress(self._console, "Restoring", look, unit="records", look_seconds=_LOOK_SECONDS)

    def _count(self, state: RestoreState) -> tuple[int, int]:
        from barnabas.client.errors import ConsumerError
        from barnabas.pipeline.export.arrivals import arrived_count

        with suppress(ConsumerError):
            self._counted = min(self._total, arrived_count(self._servers, state))
        return self._counted, self._total


def _request(options: Namespace) -> RestoreRequest:
    from barnabas.pipeline.export.restoring import RestoreRequest
    from barnabas.pipeline.options import Options
    from barnabas.pipeline.servers import take_servers

    given = Options(server_options(options))
    servers = take_servers(given)
    given.finish()
    return RestoreRequest(
        servers=servers, append=options.append, replication_factor=options.replication_factor
    )


def _planned(plan: RestorePlan) -> dict[str, object]:
    return {
        "dry_run": True,
        "cluster": plan.cluster_id,
        "records": plan.manifest.record_count,
        "topics": {topic.name: "make" if topic.topic_id is None else "fill" for topic in plan.state.topics},
        "share_groups": [group.group_id for group in plan.manifest.share_groups],
        "consumer_groups": [group.group_id for group in plan.manifest.consumer_groups],
    }


def _plan_lines(plan: RestorePlan) -> Iterator[str]:
    from barnabas.protocol.counted import counted

    for exported, target in zip(plan.manifest.topics, plan.state.topics, strict=True):
        count = sum(partition.record_count for partition in exported.partitions)
        done = "would be made" if target.topic_id is None else "is there"
        partitions = counted(len(exported.partitions), "partition")
        yield f"{target.name}: {done}; {counted(count, 'record')} for {partitions}"
    for group in plan.manifest.share_groups:
        yield f"share group {group.group_id}: {counted(len(group.positions), 'partition')}"
    for ordinary in plan.manifest.consumer_groups:
        yield f"consumer group {ordinary.group_id}: {counted(len(ordinary.offsets), 'committed offset')}"
    yield f"{counted(plan.manifest.record_count, 'record')} would be in the cluster {plan.cluster_id}"


def _summary(report: RestoreReport) -> dict[str, object]:
    return {
        "records": report.record_count,
        "written": report.written_count,
        "topics": {
            topic.name: {str(partition.partition): partition.record_count for partition in topic.partitions}
            for topic in report.manifest.topics
        },
        "share_groups": [group.group_id for group in report.manifest.share_groups],
        "consumer_groups": [group.group_id for group in report.manifest.consumer_groups],
        "notes": list(report.notes),
    }


def _lines(report: RestoreReport) -> Iterator[str]:
    from barnabas.protocol.counted import counted

    for topic in report.manifest.topics:
        count = sum(partition.record_count for partition in topic.partitions)
        partitions = counted(len(topic.partitions), "partition")
        yield f"{topic.name}: {counted(count, 'record')} in {partitions}, compared"
    for group in report.manifest.share_groups:
        yield f"share group {group.group_id}: {counted(len(group.positions), 'partition')}"
    for ordinary in report.manifest.consumer_groups:
        yield f"consumer group {ordinary.group_id}: {counted(len(ordinary.offsets), 'committed offset')}"
    before = report.record_count - report.written_count
    written = f"{counted(report.written_count, 'record')} written"
    yield f"{written}, {before:,} were there" if before else written
