"""The output of a tool without the parts that differ from run to run: addresses, ids, times, measurements.

Lines of kafka-configs about group settings that only Barnabas has are left out, so that a transcript changes
with none of them; `test_describe_configs` proves that the broker tells them all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from barnabas.broker.config import tables

_ID = "[A-Za-z0-9_-]{22}"
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

_STACK = re.compile(r"^(\s+at |Caused by: |\s+\.\.\. \d+ more)")
_LOG_LINE = re.compile(r"^\[[^\]]+\] (WARN|INFO|ERROR|DEBUG) ")
_OWN_SETTINGS = "|".join(re.escape(name) for name, setting in tables.GROUP.items() if setting.ours)
_OWN_SETTING = re.compile(rf"\s+(?:{_OWN_SETTINGS})=.* sensitive=")
_OPTIONS = re.compile(r"^Option +Description")
"""Behind this line a tool explains all its options."""
_EXIT = ("the tool has ended", "barnabas.probe.ToolRun$ToolExit: the tool has ended")
"""Tools that treat the probe's exit as a failure print this."""

_REPLACED = [
    (re.compile(rf"(TopicId: |\"topicId\":\"){_ID}"), r"\1<topic id>"),
    (re.compile(_UUID), "<uuid>"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.:,]\d{3}\S*"), "<time>"),
    (re.compile(r"\b1[7-9]\d{11}\b"), "<time>"),
    (re.compile(r"^((?:[^\t]*\t){6}<time>\s*\t)\d+ *(?=\t|$)"), r"\1<duration>"),
    (re.compile(r"\b(crc|FinalizedVersionLevel: (?:UNKNOWN )?\S+ +Epoch): \d+"), r"\1: <n>"),
    # Large and small letters, which one id in 50,000 lacks; the name of a column is as long, and has both.
    (
        re.compile(
            r"(?<!\S)(?!LatestCoordinatorEpoch)(?=\S*[A-Z])(?=\S*[a-z])[A-Za-z0-9+/_-]{22}(?=[\s.]|$)"
        ),
        "<id>",
    ),
    (re.compile(r"(TimeoutException: ).*(timed out|Timed out).*"), r"\1<timed out>"),
    (re.compile(r"(on leader: )(Call.*timed out|Timed out waiting ).*"), r"\1<timed out>"),
]
_CHOICES = re.compile(r"^(Option|Invalid state list)\b")
_CHOICE = re.compile(r"\[\[.*\]\]|(?<=: )[\w\[].*")
"""The entries of a tool's list of options are in another order each time."""
_DELETED_UP_TO = re.compile(r"^partition: ")
"""The partitions in the output of kafka-delete-records are in another order each time, too."""
_MEASURED = re.compile(r"-?\d+(\.\d+)?([eE]-?\d+)?")


def normal_form(output: str, *, secrets: Sequence[tuple[str, str]], is_measurement: bool) -> list[str]:
    """The lines to compare. `secrets` are texts to replace, such as the broker's address; all numbers of a
    measurement are replaced.
    """
    lines: list[str] = []
    for line in output.splitlines():
        if _OPTIONS.match(line):
            break
        if not line.strip() or line.endswith(_EXIT):
            continue
        if _STACK.match(line) or _LOG_LINE.match(line) or _OWN_SETTING.match(line):
            continue
        lines.append(_replaced(line.rstrip(), secrets, is_measurement))
    return [
        line
        for is_sorted, run in groupby(lines, lambda line: bool(_DELETED_UP_TO.match(line)))
        for line in (sorted(run) if is_sorted else run)
    ]


def _replaced(line: str, secrets: Sequence[tuple[str, str]], is_measurement: bool) -> str:
    for secret, word in secrets:
        line = line.replace(secret, word)
    for pattern, word in _REPLACED:
        line = pattern.sub(word, line)
    if _CHOICES.match(line):
        line = _CHOICE.sub(lambda found: " ".join(sorted(re.findall(r"[\w-]+", found[0]))), line)
    return _MEASURED.sub("<n>", line) if is_measurement else line
