"""The simulation finds bugs: each planted one within 200 seeds, with a report that names its sign."""

from collections.abc import Callable

import pytest

from tests.simulation.faults import FAULTS
from tests.simulation.planted_bugs import (
    archive_of_available_only,
    commits_of_strangers,
    dropped_fsync,
    early_merge,
    forged_markers,
    forgotten_back_offset,
    forgotten_marker,
    forgotten_tombstones,
    generation_begun_anew,
    hasty_handover,
    impatient_commits,
    jumping_stable_offset,
    offsets_of_aborted,
    overlapping_shares,
    swapped_control_records,
    two_owners,
    unstable_offset,
    unwritten_commit,
)
from tests.simulation.planted_letter_bugs import (
    archived_before_the_letter,
    given_up_by_fetches_only,
    held_for_ever,
    letters_not_looked_for,
    letters_without_fsync,
    neighbours_copied,
    rest_by_offset,
)
from tests.simulation.planted_order_bugs import (
    forgotten_unfinished_records,
    key_freed_too_early,
    released_behind_its_successor,
    run_kept_after_an_expiry,
)
from tests.simulation.planted_pending_order_bugs import (
    key_freed_by_a_pending_acknowledgement,
    order_begun_beside_pending_records,
)
from tests.simulation.planted_priority_bugs import (
    key_reordered_by_priority,
    least_urgent_first,
    priority_of_the_first_delivery_only,
    starvation,
)
from tests.simulation.planted_seeds import SEEDS_MAX, report_another_seed, seeds_to_try
from tests.simulation.planted_timing_bugs import (
    expiry_without_a_sweep,
    reading_to_the_end_of_the_batch,
    records_that_expire_early,
)
from tests.simulation.planted_transaction_bugs import (
    administrators_disregard_transactions,
    counted_at_abort,
    never_added,
    pending_forgotten_by_a_restart,
    share_partitions_forgotten_by_a_restart,
    undone_at_commit,
)
from tests.simulation.planted_wait_bugs import due_times_forgotten_by_a_restart, waits_that_end_together
from tests.simulation.planting import Plant
from tests.simulation.simulation import SHORT_MS, Failure, scenario_of, simulate
from tests.simulation.world import Scenario


def has_sharers(scenario: Scenario) -> bool:
    return scenario.sharers > 0


def shares_in_transactions(scenario: Scenario) -> bool:
    return has_sharers(scenario) and scenario.shares_in_transactions


def has_order(scenario: Scenario) -> bool:
    return bool(scenario.order.group_ids)


def has_priorities(scenario: Scenario) -> bool:
    return bool(scenario.priorities.group_ids)


def has_order_with_priorities(scenario: Scenario) -> bool:
    return has_priorities(scenario) and has_order(scenario)


def has_backoff(scenario: Scenario) -> bool:
    return scenario.backoff_ms > 0


def has_delays(scenario: Scenario) -> bool:
    return bool(scenario.timing.group_ids and scenario.timing.delay_ms)


def has_delay_headers(scenario: Scenario) -> bool:
    return bool(scenario.timing.group_ids and scenario.timing.with_header)


def has_expiry(scenario: Scenario) -> bool:
    return scenario.timing.ttl_ms > 0


def is_deserted(scenario: Scenario) -> bool:
    return scenario.timing.is_deserted


def has_share_groups_only(scenario: Scenario) -> bool:
    members = scenario.classic_members + scenario.consumer_members + scenario.sharers
    return not members and not scenario.backoff_ms


def acknowledges_in_transactions(scenario: Scenario) -> bool:
    return bool(scenario.groups_in_transactions)


def acknowledges_in_order_and_transactions(scenario: Scenario) -> bool:
    return not set(scenario.order.group_ids).isdisjoint(scenario.groups_in_transactions)


def has_letters(scenario: Scenario) -> bool:
    return bool(scenario.letters.group_ids)


def copies_records(scenario: Scenario) -> bool:
    return has_letters(scenario) and scenario.letters.copies


def gives_letters_up(scenario: Scenario) -> bool:
    return scenario.letters.are_given_up


def has_slow_disk_for_letters(scenario: Scenario) -> bool:
    return has_letters(scenario) and not scenario.letters.copies and "slow-disk" in scenario.fault_names


def may_lose_letters(scenario: Scenario) -> bool:
    return (
        has_letters(scenario)
        and scenario.letters.syncs_records
        and scenario.keeps_state_in_log
        and "power-loss" in scenario.fault_names
    )


def first_failure(
    plant: Plant,
    can_show_it: Callable[[Scenario], bool] = lambda _: True,
    fault_names: tuple[str, ...] = tuple(FAULTS),
    active_ms: int = SHORT_MS,
) -> str:
    """The report of the first seed that fails, among those whose scenario can show the bug."""
    with plant():
        for number in seeds_to_try(plant.__name__):
            seed = str(number)
            try:
                if can_show_it(scenario_of(seed, active_ms, fault_names)):
                    simulate(seed, active_ms, fault_names)
            except Failure as failure:
                report_another_seed(plant.__name__, number)
                return str(failure)
    pytest.fail(f"not found in {SEEDS_MAX} seeds")


def check_found(sign: str, plant: Plant, can_show_it: Callable[[Scenario], bool] = lambda _: True) -> None:
    """The first line of the report has this sign, or one of several with `|` between them."""
    report = first_failure(plant, can_show_it)
    assert any(alternative in report.splitlines()[0] for alternative in sign.split("|")), report


@pytest.mark.parametrize(
    ("plant", "sign"),
    [
        pytest.param(swapped_control_records, "by the log", id="two control records swapped"),
        pytest.param(forgotten_back_offset, ".back_offset", id="a forgotten back offset"),
        pytest.param(
            archive_of_available_only, "confirmed", id="an archive that leaves held records as they are"
        ),
        pytest.param(forgotten_marker, "transactions are not done", id="a forgotten marker"),
        pytest.param(forged_markers, "its transaction", id="a marker of a client that is taken"),
        pytest.param(
            unstable_offset, "the last stable offset", id="a stable offset behind an open transaction"
        ),
        pytest.param(offsets_of_aborted, "is in force", id="an aborted transaction's offsets in force"),
        pytest.param(unwritten_commit, "is in force", id="a commit that isn't written"),
        pytest.param(generation_begun_anew, "classic: ", id="generations that begin again"),
        pytest.param(two_owners, "holds it", id="a partition with two owners"),
    ],
)
def test_a_planted_bug_is_found(plant: Plant, sign: str) -> None:
    check_found(sign, plant)


@pytest.mark.parametrize(
    ("plant", "can_show_it", "sign"),
    [
        pytest.param(
            hasty_handover,
            shares_in_transactions,
            "has ended",
            id="a share handed over before the transaction ended",
        ),
        pytest.param(overlapping_shares, has_sharers, "holds it", id="shares that overlap"),
        pytest.param(
            commits_of_strangers,
            has_sharers,
            "commits for",
            id="a fenced member's commit that is accepted",
        ),
        pytest.param(
            early_merge,
            shares_in_transactions,
            "is committed, but",
            id="ranges in force before their transaction ends",
        ),
        pytest.param(
            jumping_stable_offset, has_sharers, "is committed, but", id="a stable offset that jumps"
        ),
        pytest.param(
            impatient_commits,
            shares_in_transactions,
            "did not wait",
            id="a commit that does not wait for others",
        ),
    ],
)
def test_a_bug_of_shared_partitions_is_found(
    plant: Plant, can_show_it: Callable[[Scenario], bool], sign: str
) -> None:
    check_found(sign, plant, can_show_it)


@pytest.mark.parametrize(
    ("plant", "sign"),
    [
        pytest.param(
            released_behind_its_successor, "and a later one than", id="a released record that goes last"
        ),
        pytest.param(key_freed_too_early, "too many are held", id="a key that is freed too early"),
        pytest.param(
            forgotten_unfinished_records,
            "and a later one than",
            id="a restart that forgets records",
        ),
    ],
)
def test_a_bug_of_the_order_of_keys_is_found(plant: Plant, sign: str) -> None:
    check_found(sign, plant, has_order)


@pytest.mark.parametrize(
    ("plant", "can_show_it", "sign"),
    [
        pytest.param(
            priority_of_the_first_delivery_only, has_priorities, "leader knows it", id="a priority lost"
        ),
        pytest.param(least_urgent_first, has_priorities, "urgency 9 is not", id="the least urgent first"),
        pytest.param(starvation, has_priorities, "urgency 10", id="a record overtaken for ever"),
        pytest.param(
            key_reordered_by_priority, has_order_with_priorities, "red: the key", id="a key reordered"
        ),
    ],
)
def test_a_bug_of_priorities_is_found(
    plant: Plant, can_show_it: Callable[[Scenario], bool], sign: str
) -> None:
    check_found(sign, plant, can_show_it)


@pytest.mark.parametrize(
    ("plant", "sign"),
    [
        pytest.param(waits_that_end_together, "before it is due", id="waits that end together"),
        pytest.param(due_times_forgotten_by_a_restart, "and is due at", id="waits that a restart forgets"),
    ],
)
def test_a_bug_of_delays_before_retries_is_found(plant: Plant, sign: str) -> None:
    check_found(sign, plant, has_backoff)


@pytest.mark.parametrize(
    ("plant", "can_show_it", "sign"),
    [
        pytest.param(
            reading_to_the_end_of_the_batch,
            has_delays,
            "before it is due",
            id="a batch that is read to its end",
        ),
        pytest.param(
            records_that_expire_early, has_expiry, "expired too early", id="records that expire early"
        ),
        pytest.param(expiry_without_a_sweep, is_deserted, "not done after", id="expiry without a sweep"),
    ],
)
def test_a_bug_of_delay_and_expiry_is_found(
    plant: Plant, can_show_it: Callable[[Scenario], bool], sign: str
) -> None:
    check_found(sign, plant, can_show_it)


@pytest.mark.parametrize(
    ("plant", "can_show_it", "sign"),
    [
        pytest.param(
            letters_not_looked_for, has_letters, "has 2 dead letters", id="letters that are not looked for"
        ),
        pytest.param(
            archived_before_the_letter, has_letters, "has no dead letter", id="a record archived first"
        ),
        pytest.param(neighbours_copied, copies_records, "is no copy", id="a copy of another record"),
        pytest.param(held_for_ever, has_letters, "not done after", id="letters that are held for ever"),
        pytest.param(
            given_up_by_fetches_only,
            gives_letters_up,
            "are not given up",
            id="letters given up by fetches only",
        ),
    ],
)
def test_a_bug_of_dead_letters_is_found(
    plant: Plant, can_show_it: Callable[[Scenario], bool], sign: str
) -> None:
    check_found(sign, plant, can_show_it)


@pytest.mark.parametrize(
    ("plant", "sign"),
    [
        pytest.param(counted_at_abort, "reason", id="an abort that counts"),
        pytest.param(undone_at_commit, "is delivered again", id="a commit that undoes"),
        pytest.param(pending_forgotten_by_a_restart, "waits for", id="a restart that forgets"),
        pytest.param(
            administrators_disregard_transactions, "an administrator changed", id="changed meanwhile"
        ),
        pytest.param(
            share_partitions_forgotten_by_a_restart,
            "waits for|was confirmed as final",
            id="an outcome that a restart forgets",
        ),
        pytest.param(never_added, "was confirmed as final", id="a share-partition that does not take part"),
    ],
)
def test_a_bug_of_acknowledgements_in_transactions_is_found(plant: Plant, sign: str) -> None:
    check_found(sign, plant, acknowledges_in_transactions)


@pytest.mark.parametrize(
    ("plant", "sign"),
    [
        pytest.param(key_freed_by_a_pending_acknowledgement, "red: the key", id="a key that is freed"),
        pytest.param(order_begun_beside_pending_records, "red: the key", id="an order begun early"),
    ],
)
def test_a_bug_of_transactions_in_the_order_of_keys_is_found(plant: Plant, sign: str) -> None:
    check_found(sign, plant, acknowledges_in_order_and_transactions)


def test_a_run_that_is_kept_after_an_expiry_is_found() -> None:
    """Where no fault ends the locks before."""
    report = first_failure(run_kept_after_an_expiry, has_order, ())
    assert "and a later one than" in report.splitlines()[0], report


def test_delays_that_a_restart_forgets_are_found() -> None:
    """Where the broker restarts often, and the clock is never set."""
    report = first_failure(due_times_forgotten_by_a_restart, has_delay_headers, ("restart", "kill"))
    assert "before it is due" in report.splitlines()[0], report


def test_pending_ranges_that_outlive_a_reset_are_found() -> None:
    """Where the administrator of the sharing group has the time to reset its offsets several times."""
    report = first_failure(forgotten_tombstones, shares_in_transactions, (), active_ms=14_000)
    assert "is committed, but" in report.splitlines()[0], report


def test_a_dropped_fsync_is_found() -> None:
    """By a lost record, where no lost offset or due time tells it before."""
    report = first_failure(dropped_fsync, has_share_groups_only)
    assert "was confirmed" in report.splitlines()[0], report


def test_letters_without_an_fsync_are_found() -> None:
    report = first_failure(letters_without_fsync, may_lose_letters, ("power-loss",))
    assert "has no dead letter" in report.splitlines()[0], report


def test_letters_that_are_put_back_by_their_offsets_are_found() -> None:
    """A slow disk makes letters of several decisions wait for each other. Those that are not put back are
    forgotten until the next start.
    """
    report = first_failure(rest_by_offset, has_slow_disk_for_letters, ("slow-disk",))
    assert "not done after" in report.splitlines()[0], report


def test_a_failure_names_the_command_that_repeats_it() -> None:
    report = first_failure(forgotten_back_offset)
    seed, step = report.split(":")[0].split(", ")
    assert step.startswith("step ")
    again = f"make sim {seed.upper().replace(' ', '=')} LENGTH={SHORT_MS}"
    assert report.splitlines()[-1] == f"To repeat it: {again}"
