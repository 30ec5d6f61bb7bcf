"""Kafka's command line tools, run as by a person: the output equals that on Apache Kafka, or differs for a
reason in docs/tools.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.clients.java_build import PROJECT
from tests.clients.share_probe import ShareProbe
from tests.clients.transcripts.normal_form import normal_form
from tests.clients.transcripts.record import play_here, play_on_kafka
from tests.clients.transcripts.running import MAIN_CLASSES, run_alone
from tests.clients.transcripts.transcript import Step, names, read

QUICK = ("broker", "share_groups")
"""The transcripts in `make test`. The others need a minute each."""
PLAYS_MAX = 3
OPTION = re.compile(r"(?<!\S)--[a-z][a-z.-]*[a-z]")
EXPLAINED_OPTION = re.compile(r"^ *--[a-z][a-z.-]*[a-z]", re.MULTILINE)
"""At the beginning of a line of `--help`."""
UNUSED = {
    "--help",
    "--version",
    "--bootstrap-server",  # added to every command
    "--bootstrap-controller",  # no address in these transcripts
    "--print-metrics",  # options of the client
    "--cluster-metadata-decoder",  # see test_metadata_tools
    "--share-group-state-decoder",  # see test_state_topic_tools
    "--remote-log-metadata-decoder",  # option for tiered storage
}
SUBCOMMANDS = {
    "kafka-features": ("describe", "upgrade", "downgrade", "disable", "version-mapping"),
    "kafka-transactions": ("list", "describe", "describe-producers", "abort", "find-hanging"),
}
TOOLS_DOCUMENT = PROJECT / "docs" / "tools.md"

every_transcript = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.clients) for name in names()
]


@pytest.fixture(scope="session")
def jvm() -> Iterator[ShareProbe]:
    """A JVM without a broker."""
    probe = ShareProbe("")
    yield probe
    probe.kill()


def compare(steps: Sequence[Step], expected: Sequence[list[str]], printed: Sequence[list[str]]) -> None:
    """Reports all differences at once, because a run takes long."""
    different = [
        "\n".join([step.line, *unified_diff(wanted, lines, "expected", "printed", lineterm="")])
        for step, lines, wanted in zip(steps, printed, expected, strict=True)
        if lines != wanted
    ]
    assert not different, "\n".join(different)


@pytest.mark.barnabas
@pytest.mark.parametrize("name", every_transcript)
def test_the_tools_print_the_transcript(
    name: str, jvm: ShareProbe, tmp_path: Path, barnabas_command: Path
) -> None:
    steps = read(name)
    compare(steps, [step.expected for step in steps], play_here(steps, jvm, tmp_path, barnabas_command))


@pytest.mark.rare
@pytest.mark.barnabas
@pytest.mark.parametrize("name", names())
def test_the_transcript_is_their_output_on_kafka(name: str, jvm: ShareProbe, tmp_path: Path) -> None:
    """In one of several plays: Kafka's output while its groups settle depends on timing."""
    steps = read(name)
    expected = printed = [step.kafka for step in steps]
    for number in range(PLAYS_MAX):
        directory = tmp_path / str(number)
        directory.mkdir()
        played = play_on_kafka(steps, jvm, directory)
        printed = [
            wanted if number and before == wanted else now
            for wanted, before, now in zip(expected, printed, played, strict=True)
        ]
        if printed == expected:
            break
    compare(steps, expected, printed)


@pytest.mark.parametrize(
    "reason",
    [
        "Call(callName=topicMetadata, deadlineMs=1764322931000) timed out at 1764322931000 after 7 tries",
        "Timed out waiting for a node assignment. Call: topicMetadata",
        "Timed out waiting to send the call. Call: topicMetadata",
    ],
)
def test_a_deadline_reads_the_same_wherever_it_finds_the_call(reason: str) -> None:
    """KafkaAdminClient's call waits for a node, or to be sent, or has been answered when its time is up."""
    line = f"Failed to describe producers for partition missing-0 on leader: {reason}. Enable debug logging."
    assert normal_form(line, secrets=(), is_measurement=False) == [
        "Failed to describe producers for partition missing-0 on leader: <timed out>"
    ]


@pytest.mark.rare
@pytest.mark.parametrize("tool", MAIN_CLASSES)
def test_every_option_of_a_tool_is_used_somewhere(tool: str) -> None:
    lines = [step.text for name in names() for step in read(name) if step.text.startswith(f"{tool} ")]
    used = {option for line in lines for option in OPTION.findall(line)}
    help_text = "\n".join(
        (result.output + result.errors)
        for arguments in (["--help"], *([one, "--help"] for one in SUBCOMMANDS.get(tool, ())))
        for result in [run_alone(MAIN_CLASSES[tool], arguments)]
    )
    explained = {found[0] for found in EXPLAINED_OPTION.finditer(help_text)}
    assert explained
    assert {one.strip() for one in explained} - used - UNUSED == set()


def test_the_document_explains_every_difference_and_nothing_else() -> None:
    reasons = {step.reason for name in names() for step in read(name)} - {None}
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", TOOLS_DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert {row for row in rows if not row.startswith(("-", "difference"))} == reasons
