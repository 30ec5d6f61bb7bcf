"""Two brokers' answers, field by field.

Only the differences of `rules.py` are allowed. A list is compared in its order, unless `orders.py` declares
its order meaningless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.differential.plain import Plain, is_list, is_mapping
from tests.differential.rule import Rule
from tests.differential.rules import allowing, identity, is_ordered
from tests.differential.stage import BROKEN_OFF, Observation

MISSING = "<no such field>"


class Difference(NamedTuple):
    """A difference between two answers; `rule` is the one that allows it, or None."""

    step: int
    path: str
    kafka: Plain
    ours: Plain
    rule: Rule | None


@dataclass
class Comparison:
    """The outcome of comparing some histories. `is_older_kafka`: with Apache Kafka 4.3.1."""

    is_older_kafka: bool = False
    field_count: int = 0
    answer_count: int = 0
    allowed: Counter[str] = field(default_factory=Counter[str])
    """The number of uses of each rule."""
    real: list[Difference] = field(default_factory=list[Difference])

    def add(self, kafka: Sequence[Observation], ours: Sequence[Observation]) -> list[Difference]:
        """Compare one history; returns its real differences. After the first one the rest of the history is
        left out, because further differences may follow from it.
        """
        real: list[Difference] = []
        for step, (expected, got) in enumerate(zip(kafka, ours, strict=False)):
            self.answer_count += 1
            differences = list(self._differences(step, expected, got))
            ending = [one.rule for one in differences if one.rule is not None and one.rule.ends_history]
            if ending:
                self.allowed[ending[0].name] += 1
                return []
            self.allowed.update(one.rule.name for one in differences if one.rule is not None)
            real += [one for one in differences if one.rule is None]
            if real:
                break
        if not real and len(kafka) != len(ours):
            real.append(Difference(min(len(kafka), len(ours)), "answers", len(kafka), len(ours), None))
        self.real += real
        return real

    def summary(self) -> str:
        """The counts, as columns of a table."""
        allowed = sum(self.allowed.values())
        return f"{self.answer_count:>9}{self.field_count:>9}{allowed:>9}{len(self.real):>6}"

    def _differences(self, step: int, kafka: Observation, ours: Observation) -> Iterator[Difference]:
        if BROKEN_OFF in (kafka.api, ours.api):
            yield Difference(step, "the whole history", kafka.answer, ours.answer, None)
            return
        if (kafka.api, kafka.version) != (ours.api, ours.version):
            yield Difference(step, "api", f"{kafka.api} {kafka.version}", f"{ours.api} {ours.version}", None)
            return
        for path, expected, got in self._leaves(kafka.api, "", kafka.answer, ours.answer):
            yield Difference(step, path, expected, got, self._rule(kafka.api, path, expected, got))

    def _rule(self, api: str, path: str, kafka: Plain, ours: Plain) -> Rule | None:
        return allowing(api, path, kafka, ours, is_older_kafka=self.is_older_kafka)

    def _leaves(self, api: str, path: str, kafka: Plain, ours: Plain) -> Iterator[tuple[str, Plain, Plain]]:
        """The fields that differ."""
        if is_mapping(kafka) and is_mapping(ours):
            for name in sorted(kafka.keys() | ours.keys()):
                inner = f"{path}.{name}" if path else name
                yield from self._leaves(api, inner, kafka.get(name, MISSING), ours.get(name, MISSING))
        elif is_list(kafka) and is_list(ours):
            yield from self._elements(api, path, kafka, ours)
        else:
            self.field_count += 1
            if kafka != ours or type(kafka) is not type(ours):
                yield path, kafka, ours

    def _elements(
        self, api: str, path: str, kafka: list[Plain], ours: list[Plain]
    ) -> Iterator[tuple[str, Plain, Plain]]:
        if not is_ordered(api, path):
            kafka, ours = sorted(kafka, key=identity), sorted(ours, key=identity)
            common = {identity(one) for one in kafka} & {identity(one) for one in ours}
            yield from [
                (f"{path}{{{identity(one)}}}", one, MISSING) for one in kafka if identity(one) not in common
            ]
            yield from [
                (f"{path}{{{identity(one)}}}", MISSING, one) for one in ours if identity(one) not in common
            ]
            kafka = [one for one in kafka if identity(one) in common]
            ours = [one for one in ours if identity(one) in common]
        if len(kafka) != len(ours) or (kafka != ours and self._rule(api, path, kafka, ours)):
            self.field_count += 1
            yield path, kafka, ours
            return
        for expected, got in zip(kafka, ours, strict=True):
            label = f"{{{identity(expected)}}}" if isinstance(expected, dict) else ""
            yield from self._leaves(api, path + label, expected, got)
