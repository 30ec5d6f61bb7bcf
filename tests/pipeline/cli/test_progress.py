"""The look of progress on a terminal, and in a file."""

import io
import itertools
import threading
from contextlib import suppress

import pytest

from barnabas.pipeline.cli.console import Console
from barnabas.pipeline.cli.progress import Progress
from barnabas.pipeline.cli.task_progress import polled_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def lines(output: io.StringIO) -> list[str]:
    return output.getvalue().splitlines()


def test_a_terminal_shows_one_bar_that_is_drawn_over() -> None:
    output, clock = Terminal(), Clock()
    with Progress("Reading", total=200, unit="records", output=output, clock=clock) as progress:
        clock.seconds = 10
        progress.advance(50)
        clock.seconds = 20
        progress.advance(150)
    drawn = output.getvalue().split("\r\x1b[2K")[1:]
    assert drawn == [
        "Reading  [######..................]   25%  50 of 200 records  5/s  0:30 left",
        "Reading  [########################]  100%  200 of 200 records  10/s",
        "Reading  [########################]  100%  200 of 200 records  10/s\n",
    ]


def test_a_terminal_is_not_drawn_more_often_than_anyone_can_see() -> None:
    output, clock = Terminal(), Clock()
    progress = Progress("Reading", total=None, unit="records", output=output, clock=clock)
    for _ in range(1_000):
        clock.seconds += 0.001
        progress.advance(1)
    assert output.getvalue().count("\r") in range(8, 12)


def test_a_file_gets_a_line_now_and_then() -> None:
    output, clock = io.StringIO(), Clock()
    with Progress("Reading", total=None, unit="records", output=output, clock=clock) as progress:
        for _ in range(25):
            clock.seconds += 1
            progress.advance(1_000)
    assert lines(output) == [
        "Reading  10,000 records  1,000/s",
        "Reading  20,000 records  1,000/s",
        "Reading  25,000 records  1,000/s",
    ]


def test_work_of_an_earlier_run_counts_but_not_for_the_rate() -> None:
    output, clock = io.StringIO(), Clock()
    with Progress("Reading", total=1_100, unit="records", output=output, clock=clock) as progress:
        progress.resume_from(1_000)
        clock.seconds = 10
        progress.advance(50)
    assert lines(output)[-1] == "Reading   95%  1,050 of 1,100 records  5/s  0:10 left"


def test_quiet_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with Progress("Reading", total=1, unit="records", output=None) as progress:
        progress.advance(1)
    assert capfd.readouterr() == ("", "")


def shown(*, fails: bool = False, total_grows: bool = False) -> str:
    """The output to a file during a block, in which `look` is called at least three times."""
    errors, looked = io.StringIO(), threading.Semaphore(0)
    done = itertools.count()

    def look() -> tuple[int, int]:
        looked.release()
        return min(next(done), 4), 1_000

    console = Console(as_json=False, quiet=False, output=io.StringIO(), errors=errors)
    showing = polled_progress(
        console, "Copying", look, unit="files", look_seconds=0.001, total_grows=total_grows
    )
    with suppress(ConnectionError), showing:
        for _ in range(3):
            looked.acquire()
        if fails:
            raise ConnectionError
    return errors.getvalue()


def test_the_counts_of_looks_are_shown_and_full_at_the_end() -> None:
    assert shown(fails=False).startswith("Copying  100%  1,000 of 1,000 files")


def test_a_failed_job_is_not_shown_as_done() -> None:
    assert shown(fails=True).startswith("Copying    0%")


def test_a_total_that_grows_is_not_shown_and_no_time_is_told() -> None:
    line = shown(total_grows=True)
    assert line.startswith("Copying  1,000 files  ")
    assert "left" not in line
