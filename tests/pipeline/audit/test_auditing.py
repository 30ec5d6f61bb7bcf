"""An audit on Spark: its tables, the report, the command."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.audit import Audit, audit, command, summary, write_report
from barnabas.pipeline.audit.source import decode_plan, encode_plan
from barnabas.pipeline.audit.summary import ARCHIVED_COUNTS, LETTER_COUNTS
from barnabas.pipeline.cli import session
from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.protocol.delivery_state import Cause
from tests.pipeline.audit.written_logs import (
    WrittenGroup,
    WrittenLog,
    accepted,
    archived,
    archiving,
    lettered,
    released,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two topics, one of them with two groups, and one violation."""
    directory = tmp_path_factory.mktemp("audited")
    orders = WrittenLog(directory, "orders")
    orders.produce(20)
    workers, checkers = WrittenGroup(orders, "workers"), WrittenGroup(orders, "checkers <b>")
    workers.delta(accepted(0, 9, member="anna"), released(10, 14, cause=Cause.LOCK_EXPIRED, member="bert"))
    workers.delta(accepted(10, 13, 2, member="anna"), archived(14, 14, 2, Cause.DELIVERY_LIMIT, "bert"))
    checkers.delta(accepted(0, 4))
    checkers.delta(archived(3, 3))
    refunds = WrittenLog(directory, "refunds", 3)
    refunds.produce(5)
    WrittenGroup(refunds, "workers").delta(released(0, 2))
    return directory


@pytest.fixture(scope="module")
def audited(spark: SparkSession, data: Path) -> Audit:
    """The audit of it."""
    return audit(spark, [str(data)])


def test_deliveries_are_rows(audited: Audit) -> None:
    rows = audited.deliveries.where("group = 'workers' and topic = 'orders'").orderBy("firstOffset").collect()
    assert [(row.firstOffset, row.lastOffset, row.recordCount, row.cause, row.member) for row in rows] == [
        (0, 9, 10, "accept", "anna"),
        (10, 14, 5, "lock_expired", "bert"),
        (10, 13, 4, "accept", "anna"),
        (14, 14, 1, "delivery_limit", "bert"),
    ]


def test_states_are_done_or_open(audited: Audit) -> None:
    rows = audited.states.where("group = 'workers'").orderBy("topic", "firstOffset").collect()
    assert [(row.topic, row.firstOffset, row.lastOffset, row.state) for row in rows] == [
        ("orders", 0, 9, "acknowledged"),
        ("orders", 10, 13, "acknowledged"),
        ("orders", 14, 14, "archived"),
        ("refunds", 0, 2, "available"),
    ]


@pytest.fixture(scope="module")
def lettered_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A group with dead letters: two written, one lost, one due."""
    directory = tmp_path_factory.mktemp("lettered")
    orders = WrittenLog(directory, "orders")
    orders.produce(10)
    workers = WrittenGroup(orders, "workers")
    workers.delta(archiving(0, 2, member="anna"), accepted(3, 4, member="anna"))
    workers.delta(archiving(5, 5, 5, Cause.DELIVERY_LIMIT, "bert"))
    workers.delta(lettered(0, 1), lettered(2, 2, cause=Cause.LETTER_FAILED))
    return directory


def test_a_record_with_a_dead_letter_counts_once_in_every_table(
    spark: SparkSession, lettered_data: Path
) -> None:
    with audit(spark, [str(lettered_data)]) as audited:
        states = audited.states.orderBy("firstOffset").collect()
        assert [(row.firstOffset, row.lastOffset, row.state, row.letter) for row in states] == [
            (0, 1, "archived", "written"),
            (2, 2, "archived", "failed"),
            (3, 4, "acknowledged", None),
            (5, 5, "archiving", None),
        ]
        outcomes = audited.outcomes.groupBy("outcome", "cause", "letter").agg({"recordCount": "sum"})
        assert {tuple(row) for row in outcomes.collect()} == {
            ("acknowledged", "accept", None, 2),
            ("archived", "reject", "written", 2),
            ("archived", "reject", "failed", 1),
            ("archiving", "delivery_limit", "due", 1),
        }
        done = {row.member: row.recordCount for row in audited.latencies.collect()}
        assert done == {"anna": 5}, "a record on its way is not finished"


def test_the_report_shows_dead_letters_beside_the_causes(
    spark: SparkSession, lettered_data: Path, tmp_path: Path
) -> None:
    with audit(spark, [str(lettered_data)]) as audited:
        found = write_report(audited, tmp_path / "audit.html")
    (group,) = found.groups
    assert (group["rejectedCount"], group["deliveryLimitCount"]) == (3, 0)
    assert [group[name] for name in LETTER_COUNTS] == [1, 2, 1, 0]
    assert (group["failedDeliveryCount"], group["archivedWithoutCauseCount"], group["openCount"]) == (0, 0, 5)
    members = {row["member"]: (row["rejectedCount"], row["deliveryLimitCount"]) for row in found.members}
    assert members == {"anna": (3, 0), "bert": (0, 1)}
    assert [row["letter"] for row in found.poison] == ["failed", "due", "written"]
    page = parsed((tmp_path / "audit.html").read_text(encoding="utf-8"))
    assert "archived: reject, dead letter written" in page.text
    assert "archiving: delivery limit, dead letter due" in page.text
    assert {"Dead letters due", "Dead letters written", "Dead letters lost"} <= set(page.text)


def test_every_archived_record_counts_under_its_cause(spark: SparkSession, tmp_path: Path) -> None:
    causes = [
        Cause.REJECT,
        Cause.DELIVERY_LIMIT,
        Cause.GAP,
        Cause.TRANSACTION_ABORTED,
        Cause.EXPIRED,
        Cause.ADMIN,
    ]
    log = WrittenLog(tmp_path, "orders")
    log.produce(len(causes))
    WrittenGroup(log).delta(*(archived(offset, offset, cause=cause) for offset, cause in enumerate(causes)))
    with audit(spark, [str(tmp_path)]) as audited:
        totals = summary.summarise(audited).totals()
    told = {name: totals[name] for name in ARCHIVED_COUNTS}
    without_any = {"logStartCount", "archivedWithoutCauseCount"}
    assert told == {name: int(name not in without_any) for name in ARCHIVED_COUNTS}
    assert sum(told.values()) == len(causes)


def test_violations_are_rows(audited: Audit) -> None:
    (row,) = audited.violations.collect()
    assert (row.topic, row.group, row.check, row.firstOffset) == (
        "orders",
        "checkers <b>",
        "final_changed",
        3,
    )


def test_share_partitions_have_the_beginning_of_their_history(audited: Audit) -> None:
    rows = audited.share_partitions.orderBy("topic", "group").collect()
    assert [(row.topic, row.partition, row.group, row.begins) for row in rows] == [
        ("orders", 0, "checkers <b>", "whole"),
        ("orders", 0, "workers", "whole"),
        ("refunds", 3, "workers", "whole"),
    ]
    assert rows[0].beganAt < rows[0].lastDecidedAt


def test_topics_and_groups_may_be_chosen(spark: SparkSession, data: Path) -> None:
    with audit(spark, [str(data)], topics=["orders"], groups=["workers"]) as chosen:
        assert [tuple(row)[:3] for row in chosen.share_partitions.collect()] == [("orders", 0, "workers")]


def test_latencies_join_the_records_times(audited: Audit) -> None:
    rows = audited.latencies.where("topic = 'orders' and group = 'workers'").orderBy("member").collect()
    assert [(row.member, row.recordCount) for row in rows] == [("anna", 14), ("bert", 1)]
    assert all(0 <= row.medianMs <= row.maxMs < 100 for row in rows)


def test_bad_input_is_an_error_that_names_it(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"topics: .*nothing"):
        audit(spark, [str(data)], topics=["nothing"])
    with pytest.raises(PipelineError, match=str(tmp_path)):
        audit(spark, [str(tmp_path)])
    with pytest.raises(OptionError, match="paths"):
        audit(spark, [])


def test_a_plan_survives_being_an_option(audited: Audit) -> None:
    assert encode_plan(decode_plan(encode_plan(audited.tasks))) == encode_plan(audited.tasks)


class Page(HTMLParser):
    """The parts of a report. Checks that every element is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br", "wbr"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def report(audited: Audit, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The whole report."""
    path = tmp_path_factory.mktemp("report") / "audit.html"
    write_report(audited, path, with_latencies=True)
    return path.read_text(encoding="utf-8")


def parsed(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page


def test_the_report_opens_without_the_internet(report: str) -> None:
    page = parsed(report)
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not {"src", "href", "srcset"} & {name for name, _ in page.attributes}
    assert not any(loader in report for loader in ("http", "url(", "@import"))


def test_the_report_has_numbers_beside_each_chart(report: str) -> None:
    page = parsed(report)
    assert page.tags.count("figure") == page.tags.count("figcaption") == page.tags.count("details") == 4
    assert page.tags.count("table") - page.tags.count("caption") == 4, (
        "a chart's table has the chart's caption"
    )
    assert page.attributes.count(("role", "img")) == 4
    named = [value for name, value in page.attributes if name == "aria-label"]
    assert len(named) == page.tags.count("table") + 4
    assert all(named)
    assert "checkers <b>" in page.text, "users' names are escaped"
    assert "1 violation was found." in page.text
    assert any("in no table" in text for text in page.text)


def run_command(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> int:
    """The command on the tests' own session, which it would stop."""

    def open_session(_options: argparse.Namespace, _name: str) -> nullcontext[SparkSession]:
        return nullcontext(spark)

    monkeypatch.setattr(session, "open_session", open_session)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(arguments))


def test_the_command_writes_report_and_tables(
    spark: SparkSession,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report, tables = tmp_path / "audit.html", tmp_path / "tables"
    arguments = [str(data), "--report", str(report), "--tables", str(tables), "--json", "--quiet"]
    assert run_command(spark, monkeypatch, arguments) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["violations"] == {"final_changed": 1}
    assert printed["acknowledgedCount"] == 19
    assert printed["sharePartitionCount"] == 3
    assert report.exists()
    assert spark.read.parquet(str(tables / "deliveries")).count() == 7
    assert spark.read.parquet(str(tables / "violations")).count() == 1
    assert {path.name for path in tables.iterdir()} == set(command.TABLES)


def test_the_command_writes_the_table_of_latencies_only_with_its_option(
    spark: SparkSession, data: Path, audited: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = tmp_path / "tables"
    arguments = [str(data), "--tables", str(tables), "--latencies", "--quiet"]
    assert run_command(spark, monkeypatch, arguments) == 1
    assert {path.name for path in tables.iterdir()} == {*command.TABLES, command.LATENCIES}
    written = spark.read.parquet(str(tables / command.LATENCIES))
    assert written.count() > 0
    assert sorted(written.collect()) == sorted(audited.latencies.collect())


@pytest.fixture
def done_data(tmp_path: Path) -> Path:
    """A group that has accepted all records, and one that has accepted those behind its start."""
    orders = WrittenLog(tmp_path / "done", "orders")
    orders.produce(20)
    WrittenGroup(orders, "early").delta(accepted(0, 19))
    WrittenGroup(orders, "late", start_offset=15).delta(accepted(15, 19))
    return tmp_path / "done"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "line"),
    [
        (["--require-done", "--groups", "early"], 0, "Every record is done."),
        (["--require-done"], 1, "Not every record is done: 0 open, 0 unknown, 15 skipped at the start."),
        (["--groups", "late"], 0, "0 unknown, 0 open, 15 skipped at the start"),
    ],
)
def test_every_record_may_be_required_to_be_done(
    spark: SparkSession,
    done_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    exit_code: int,
    line: str,
) -> None:
    assert run_command(spark, monkeypatch, [str(done_data), *arguments]) == exit_code
    assert line in capsys.readouterr().out


def test_open_records_and_an_unknown_start_are_not_done(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = WrittenLog(tmp_path / "data", "orders")
    orders.produce(20)
    WrittenGroup(orders, "open").delta(accepted(0, 9))
    orders.mark(1)
    WrittenGroup(orders, "cut", is_begun=False).checkpoint(checkpoint_epoch=7)
    for group, open_count, skipped_count in (("open", 10, 0), ("cut", 20, None)):
        arguments = [str(tmp_path / "data"), "--groups", group, "--require-done", "--json", "--quiet"]
        assert run_command(spark, monkeypatch, arguments) == 1
        printed = json.loads(capsys.readouterr().out)
        assert (printed["openCount"], printed["skippedCount"]) == (open_count, skipped_count)
        assert printed["isDone"] is False


def test_a_wrong_path_is_refused_before_spark_starts(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(PipelineError, match="is not a data directory"):
        command.run(parser.parse_args([str(tmp_path), "--master", "nothing"]))


def test_totals_include_groups_without_a_row(audited: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = summary.summarise(audited)
    monkeypatch.setattr(summary, "ROWS_MAX", 1)
    cut = summary.summarise(audited)
    assert (len(whole.groups), len(cut.groups)) == (3, 1)
    assert cut.totals() == whole.totals()


def test_a_dry_run_reads_nothing(
    spark: SparkSession,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = tmp_path / "audit.html"
    assert run_command(spark, monkeypatch, [str(data), "--report", str(report), "--dry-run"]) == 0
    assert "2 segments of 2 partitions" in capsys.readouterr().out
    assert not report.exists()


@pytest.mark.parametrize("option", ["--topics", "--groups"])
def test_a_missing_topic_or_group_is_refused(
    spark: SparkSession, data: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    with pytest.raises(OptionError, match=f"{option}: .*'misspelt'"):
        run_command(spark, monkeypatch, [str(data), option, "misspelt", "--quiet"])


@pytest.mark.parametrize("option", ["--report", "--tables"])
def test_a_target_that_cannot_be_written_is_refused_first(
    spark: SparkSession, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    target = {"--report": tmp_path / "missing" / "audit.html", "--tables": tmp_path / "full"}[option]
    with pytest.raises(OptionError, match=option):
        run_command(spark, monkeypatch, [str(data), option, str(target)])
