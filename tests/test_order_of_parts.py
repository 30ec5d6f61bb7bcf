"""The order in which the processes of pytest take the parts of the suite."""

from __future__ import annotations

from tests.conftest import OTHERS_BETWEEN, ordered_parts, part_of

CLIENTS = [f"tests/clients/test_{name}.py" for name in "abc"]
OTHERS = [f"tests/storage/test_{number}.py" for number in range(3 * OTHERS_BETWEEN)]


def test_a_part_is_a_file_or_a_folder_of_the_pipeline() -> None:
    assert part_of("tests/storage/reading/test_x.py::TestX::test_y[1/2]") == "tests/storage/reading/test_x.py"
    assert part_of("tests/pipeline/export/test_x.py::test_y") == "pipeline/export"
    assert part_of("tests/pipeline/test_x.py::test_y") == "pipeline"


def test_a_transcript_is_a_part_of_its_own_that_begins_early() -> None:
    transcript = "tests/clients/test_tool_transcripts.py::test_x[topics/1]"
    assert part_of(transcript) == transcript
    assert ordered_parts([*CLIENTS, *OTHERS, transcript])[0] == transcript


def test_parts_that_wait_for_other_programs_are_spread_over_the_suite() -> None:
    ordered = ordered_parts([*CLIENTS, "pipeline/export", *OTHERS])
    between = 1 + OTHERS_BETWEEN
    assert [ordered.index(part) for part in ["pipeline/export", *CLIENTS]] == [
        0,
        between,
        2 * between,
        3 * between,
    ]
    assert ordered_parts([*OTHERS, *CLIENTS])[-1] == OTHERS[-1]


def test_the_longest_files_begin_first() -> None:
    seeds = "tests/simulation/test_seeds.py"
    assert ordered_parts([*CLIENTS, *OTHERS, seeds])[0] == seeds


def test_each_part_is_there_once() -> None:
    parts = [*CLIENTS, *OTHERS, "pipeline", "tests/test_any.py"]
    assert sorted(ordered_parts(parts * 2)) == sorted(parts)
