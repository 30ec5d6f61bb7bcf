"""The seeds that find the planted bugs soonest, by the name of the bug's function.

From seed 0 on, some bugs take half a minute to be found: few seeds show them, or their runs are long. So the
tests begin with the seed in this table. It is only a hint. A change of the broker or of the simulation may
give the seed another run, and then the search goes on with all others and prints the seed that it found:
`pytest -rP tests/simulation/test_planted_bugs.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

SEEDS_MAX = 200
"""Each bug must be found within this number of seeds."""

FOR_EVER_SECONDS = 30.0
"""The virtual time after which a run is given up whose bug holds records for ever. Without the bug it comes
to rest within ten seconds.
"""

_SOONEST = {
    "administrators_disregard_transactions": 17,
    "archived_before_the_letter": 26,
    "commits_of_strangers": 20,
    "dropped_fsync": 124,
    "expiry_without_a_sweep": 18,
    "forged_markers": 4,
    "forgotten_marker": 7,
    "forgotten_tombstones": 132,
    "generation_begun_anew": 3,
    "hasty_handover": 96,
    "held_for_ever": 6,
    "letters_not_looked_for": 137,
    "letters_without_fsync": 60,
    "offsets_of_aborted": 8,
    "overlapping_shares": 10,
    "rest_by_offset": 30,
    "run_kept_after_an_expiry": 92,
    "starvation": 8,
    "swapped_control_records": 8,
    "two_owners": 4,
}


def seeds_to_try(bug: str) -> Iterator[int]:
    """All seeds, beginning with the one that is noted for the bug."""
    noted = _SOONEST.get(bug)
    if noted is not None:
        yield noted
    yield from (seed for seed in range(SEEDS_MAX) if seed != noted)


def report_another_seed(bug: str, seed: int) -> None:
    """Prints the seed if it is not noted, for the next author of this table."""
    noted = _SOONEST.get(bug)
    if noted is not None and seed != noted:
        print(f"{bug}: found by seed {seed}, no longer by seed {noted}")
