"""Replaying share state out of a state topic without Spark, as the tasks of an audit do."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from barnabas.pipeline.audit.auditing import plan_state_tasks, slice_folders
from barnabas.pipeline.audit.log_replay import DELIVERIES, FINDINGS
from barnabas.pipeline.audit.state_replay import replay_state_topic
from tests.pipeline.audit.auditing import Row


class AuditedStateTopic:
    """The tables of all share state in a data directory's state topic."""

    def __init__(self, directory: Path, *, groups: Sequence[str] | None = None) -> None:
        paths = [str(directory)]
        found = slice_folders(paths, None, raise_damage=True)
        self.tasks = plan_state_tasks(paths, found, groups, raise_damage=True)
        self._findings: dict[str, list[Row]] = defaultdict(list)
        for row in self._rows(FINDINGS):
            key = {"topic": row["topic"], "partition": row["partition"], "group": row["group"]}
            self._findings[row["table"]].append({**key, **json.loads(row["row"])})

    @property
    def deliveries(self) -> list[Row]:
        return self._rows(DELIVERIES)

    def table(self, name: str) -> list[Row]:
        return self._findings[name]

    def _rows(self, answer: str) -> list[Row]:
        return [
            row
            for task in self.tasks
            for batch in replay_state_topic(task, answer)
            for row in batch.to_pylist()
        ]
