"""Where the offsets that groups name lie in the target."""

import pytest

from barnabas.pipeline.export.offset_marks import OffsetMarks, Place, marks_of
from tests.pipeline.export.test_manifest import MANIFEST

OLD = [10, 11, 14, 15, 20]
NEW = [0, 1, 2, 5, 6]


@pytest.mark.parametrize(
    ("mark", "place"),
    [
        (0, Place(0, 0)),
        (10, Place(0, 0)),
        (12, Place(2, 2)),
        (14, Place(2, 2)),
        (16, Place(6, 4)),
        (20, Place(6, 4)),
        (21, Place(7, 5)),
        (1000, Place(7, 5)),
    ],
)
@pytest.mark.parametrize("cut", range(6))
def test_a_mark_is_the_first_record_at_or_behind_it(mark: int, place: Place, cut: int) -> None:
    marks = OffsetMarks([mark])
    marks.take(OLD[:cut], NEW[:cut])
    marks.take(OLD[cut:], NEW[cut:])
    marks.finish(7)
    assert marks.found == {mark: place}


def test_marks_are_all_offsets_that_groups_name() -> None:
    assert marks_of(MANIFEST, "bücher", 0) == [4, 5, 7, 9, 12, 15]
    assert marks_of(MANIFEST, "bücher", 1) == [0]
