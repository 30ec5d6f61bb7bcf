"""The dead letters of a run: the share groups that write them, and the ways in which they are held back."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

LETTER_TOPIC = "dlq.letters"
"""All groups of a run write their letters here. The administrator leaves it alone, except for one switch."""


class LetterSettings(NamedTuple):
    """The part of a scenario that is about dead letters."""

    group_ids: tuple[str, ...] = ()
    """The share groups that write them, from the beginning to the end, or until they give up."""
    copies: bool = False
    """Whether a letter has the key and the value of its record."""
    holds: bool = True
    """`share.dead.letter.on.failure`: a record whose letter cannot be written waits, or is archived."""
    partition_count: int = 1
    """Partitions of the topic."""
    is_created_early: bool = False
    """Whether the administrator creates the topic. Otherwise the broker does, with the first letter."""
    is_created_late: bool = False
    """Whether the broker must not create the topic for a while."""
    is_switched: bool = False
    """Whether the administrator disables the topic for letters, and enables it again."""
    syncs_records: bool = False
    """Whether the topics of the records have flush.messages=1, and `log.flush` is `interval`. Then share
    state in their logs is more durable than letters would be by `log.flush` alone.
    """
    are_given_up: bool = False
    """Whether letters are held back at last, the members leave, and the groups give the letters up: their
    records have to end without a fetch. This needs groups whose records wait for their letters.
    """


NO_LETTERS = LetterSettings()


def draw_letters(random: Random, group_ids: tuple[str, ...]) -> LetterSettings:
    """A third of the runs may have dead letters."""
    if random.random() >= 1 / 3:
        return NO_LETTERS
    is_created_early = random.random() < 0.4
    return LetterSettings(
        tuple(random.sample(group_ids, random.randint(1, len(group_ids)))),
        copies=random.random() < 0.5,
        holds=random.random() < 0.75,
        partition_count=random.choice((1, 1, 2)),
        is_created_early=is_created_early,
        is_created_late=not is_created_early and random.random() < 0.4,
        is_switched=random.random() < 0.4,
        syncs_records=random.random() < 0.4,
    )


def with_giving_up(random: Random, letters: LetterSettings) -> LetterSettings:
    """In a sixth of the runs with letters that can wait."""
    are_given_up = random.random() < 1 / 6
    return letters._replace(are_given_up=are_given_up and letters.holds and bool(letters.group_ids))
