"""Options and markers of the whole test suite."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Iterable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import hypothesis
import pytest
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.internal.constants_ast import Constants
from structlog.testing import capture_logs
from structlog.typing import EventDict
from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]

from barnabas.runtime.running_code import running_code
from barnabas.storage.log import pending_append

pytest_plugins = ("tests.flaky",)

MARKERS = {
    "barnabas": "starts, kills or abuses a broker process of its own",
    "spark": "uses the Spark session of the test process; every test with the fixture `spark` has the marker",
    "kafka": "starts Apache Kafka for the pipeline without Spark",
    "matrix": "a row of the failure matrix, repeated with --matrix-repeats",
    "clients": "needs many clients or takes long; only with --clients",
    "rare": "finds defects seldom: many kills, or Apache Kafka alone; only with --clients",
    "seeds": "has this number of histories; each follows from the parameter `seed`",
    "long": "takes long; only with --matrix-repeats",
    "release": "needs the artefacts of `make dist`, and takes long; only with --release",
    "interpreted": "changes or watches the code of modules that can be compiled; left out where they are",
    "images": "builds or runs container images, as root; only with --images",
}
KILLS = 20
_APART = "tests/clients/test_tool_transcripts.py"
"""The file whose tests are parts of their own: most take long, and they share nothing except a JVM."""
_LONGEST = ("tests/simulation/", _APART)
"""The parts with these beginnings take longest, and begin first."""
_WAITING = ("pipeline", "clients")
"""The folders whose tests wait for other programs, the one with the longer parts first. Other tests use the
processors meanwhile.
"""
OTHERS_BETWEEN = 8
"""Files that begin between two parts of these folders, so that the suite does not end with one of them."""


class Part(NamedTuple):
    """The part with this number, from 1 on, of all `parts`."""

    number: int
    parts: int

    @classmethod
    def parse(cls, text: str) -> Part:
        """Reads "2/3"; ValueError for anything else."""
        number, parts = map(int, text.split("/"))
        if not 1 <= number <= parts:
            raise ValueError(text)
        return cls(number, parts)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("barnabas")
    group.addoption(
        "--broker",
        metavar="HOST:PORT",
        help="Run tests/clients against this running broker; tests that start or kill one are deselected.",
    )
    group.addoption(
        "--barnabas",
        metavar="PATH",
        help="The barnabas command to test, instead of the one installed beside this Python.",
    )
    group.addoption(
        "--matrix-repeats",
        type=int,
        metavar="N",
        help="Run each row of the failure matrix N times (default: once), and also the tests marked `long`.",
    )
    group.addoption(
        "--kills",
        type=int,
        default=KILLS,
        metavar="N",
        help=f"Kill programs and brokers N times in each test with the fixture kills (default: {KILLS}).",
    )
    group.addoption(
        "--part",
        type=Part.parse,
        metavar="I/N",
        help="Run part I of N of the tests that the other options select; each test function is in one part.",
    )
    group.addoption(
        "--console-pictures",
        metavar="FOLDER",
        help="Save a picture of each page of the console, in both themes and widths, in this folder.",
    )
    _add_further_tests(group)


def _add_further_tests(group: pytest.OptionGroup) -> None:
    """The options that select tests which are not run by default."""
    group.addoption(
        "--clients",
        action="store_true",
        help="Run also the tests marked `clients` or `rare`: all clients and tools, and Apache Kafka.",
    )
    group.addoption(
        "--release",
        action="store_true",
        help="Run also the tests marked `release`, on the artefacts in dist.",
    )
    group.addoption(
        "--images",
        action="store_true",
        help="Run also the tests marked `images`: they build the container images, and run them in chroots.",
    )


# No test measures time: the processors may be busy with other tests. The examples are always the same, so a
# check fails only if the change is wrong. `make explore` searches with others.
_UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("gate", derandomize=True, max_examples=50, **_UNTIMED)
hypothesis.settings.register_profile("explore", **_UNTIMED)
hypothesis.settings.load_profile("gate")


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    # A shell ignores SIGINT for a command behind `&`, and so would the programs that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--hypothesis-profile") != "explore":
        # Hypothesis also draws constants of the modules that are loaded at the time: each change of the code,
        # and each order of the tests, would bring other examples.
        HypothesisProvider._local_constants = Constants()  # type: ignore[assignment]
    # kafka-python reads its own resources in a way that Python 3.11 deprecates and 3.13 allows again.
    config.addinivalue_line("filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Python's garbage collector never looks at the modules and the thousands of tests: each look would take
    a third of a second, and they all live as long as the process.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out: list[pytest.Item] = []
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    if config.getoption("--matrix-repeats") is None:
        left_out += [item for item in items if item.get_closest_marker("long")]
    if not config.getoption("--clients"):
        left_out += [item for item in items if _is_marked(item, "clients", "rare")]
    if not config.getoption("--release"):
        left_out += [item for item in items if item.get_closest_marker("release")]
    if not config.getoption("--images"):
        left_out += [item for item in items if item.get_closest_marker("images")]
    if running_code() == "compiled":
        left_out += [item for item in items if _needs_interpreted_code(item)]
    _leave_out(config, items, left_out)
    places = {part: place for place, part in enumerate(ordered_parts(part_of(item.nodeid) for item in items))}
    items.sort(key=lambda item: places[part_of(item.nodeid)])  # stable


@pytest.hookimpl(specname="pytest_collection_modifyitems", trylast=True)
def pytest_selected_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Runs after the selection by markers, so that the parts have equal numbers of functions."""
    part = config.getoption("--part")
    if part is not None:
        functions = dict.fromkeys(_function(item.nodeid) for item in items)
        chosen = set(list(functions)[part.number - 1 :: part.parts])
        _leave_out(config, items, [item for item in items if _function(item.nodeid) not in chosen])


def _needs_interpreted_code(item: pytest.Item) -> bool:
    """The simulator subclasses the leader, and the fixture replaces a constant."""
    fixtures = getattr(item, "fixturenames", ())
    return (
        _is_marked(item, "interpreted")
        or "records_only_in_files" in fixtures
        or item.nodeid.startswith("tests/simulation/")
    )


def _is_marked(item: pytest.Item, *markers: str) -> bool:
    return any(map(item.get_closest_marker, markers))


def _leave_out(config: pytest.Config, items: list[pytest.Item], left_out: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """The processes take the parts of the suite in turn, the longest ones first."""
    config.option.loadscopereorder = False
    return ByPart(config, log)


class ByPart(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no type information
    """Gives a process one part of the suite after the other: a file, a folder of the pipeline, whose tests
    share brokers or a Spark session, or a test that takes long. With --matrix-repeats the parts are test
    functions, because most of these tests are in one folder.
    """

    def _split_scope(self, nodeid: str) -> str:
        if self.config.getoption("--matrix-repeats") is not None:
            return _function(nodeid)
        return part_of(nodeid)


def _function(nodeid: str) -> str:
    """The test function, without its parameters."""
    return nodeid.partition("[")[0]


def part_of(nodeid: str) -> str:
    """The file of a test; of `tests/pipeline/export/test_x.py::test_...` the folder, `pipeline/export`; the
    whole id of a test that is a part of its own.
    """
    file = nodeid.partition("::")[0]
    if file == _APART:
        return nodeid
    _, *folders, _name = file.split("/")
    return "/".join(folders[:2]) if folders[:1] == ["pipeline"] else file


def ordered_parts(parts: Iterable[str]) -> list[str]:
    """The parts in the order in which they begin: the folders that wait are spread over the suite."""
    of_folder: dict[str, list[str]] = {}
    ordered: list[str] = []
    for part in dict.fromkeys(parts):
        if part.startswith(_LONGEST):
            ordered.append(part)
        else:
            of_folder.setdefault(part.removeprefix("tests/").partition("/")[0], []).append(part)
    waiting = [part for folder in _WAITING for part in of_folder.pop(folder, [])]
    others = [part for folder in of_folder.values() for part in folder]
    for place, part in enumerate(waiting):
        ordered += [part, *others[place * OTHERS_BETWEEN : (place + 1) * OTHERS_BETWEEN]]
    return ordered + others[len(waiting) * OTHERS_BETWEEN :]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    seeds = metafunc.definition.get_closest_marker("seeds")
    if seeds is not None:
        metafunc.parametrize("seed", _seeds(metafunc.config, *seeds.args))
    repeats = metafunc.config.getoption("--matrix-repeats")
    if repeats is not None and metafunc.definition.get_closest_marker("matrix"):
        metafunc.fixturenames.append("matrix_run")
        metafunc.parametrize("matrix_run", range(1, repeats + 1))


def _seeds(config: pytest.Config, count: int) -> Sequence[int]:
    """The first ones in the gate; with the profile `explore` some that follow from --hypothesis-seed."""
    if config.getoption("--hypothesis-profile") != "explore":
        return range(count)
    return Random(config.getoption("--hypothesis-seed")).sample(range(10**9), count)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """The number of kills in a long test, from the option --kills."""
    count = request.config.getoption("--kills")
    assert isinstance(count, int)
    return count


@pytest.fixture
def log_lines() -> Iterator[list[EventDict]]:
    """The lines that the broker's code logs during the test, as dictionaries."""
    with capture_logs() as lines:
        yield lines


@pytest.fixture
def records_only_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs keep no batches in memory, so that reads find what a test has done to the files."""
    monkeypatch.setattr(pending_append, "BATCH_BYTES_MAX", 0)
