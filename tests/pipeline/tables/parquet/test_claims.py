"""One compaction at a time holds a table's claim, and each can give up only its own."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.parquet.claims import Claim, Claims


@pytest.fixture
def claims(spark: SparkSession, tmp_path: Path) -> Claims:
    return Claims(HadoopFiles(spark, str(tmp_path)))


def claim_of(owner: str) -> Claim:
    return Claim(owner, f"place {owner}", f"staging {owner}", ("file:///a", "file:///b"))


def test_a_claim_counts_until_it_is_released(claims: Claims) -> None:
    assert claims.current() is None
    held = claims.claim(claim_of("one"))
    assert claims.current() == held
    claims.require(held)
    claims.release(held)
    assert claims.current() is None


def test_a_claim_is_not_overwritten_unless_it_is_taken_over(claims: Claims) -> None:
    held = claims.claim(claim_of("one"))
    with pytest.raises(PipelineError, match="another compaction has just begun"):
        claims.claim(claim_of("two"))
    assert claims.current() == held


def test_of_two_that_take_a_claim_over_one_succeeds(claims: Claims) -> None:
    earlier = claims.claim(claim_of("one"))
    taken = claims.take_over(earlier, "two")
    with pytest.raises(PipelineError, match="another compaction has just begun"):
        claims.take_over(earlier, "three")
    assert claims.current() == taken
    assert taken.claim.place == "place one"


def test_a_release_after_a_take_over_changes_nothing(claims: Claims) -> None:
    earlier = claims.claim(claim_of("one"))
    taken = claims.take_over(earlier, "two")
    claims.release(earlier)
    assert claims.current() == taken
    claims.release(taken)
    claimed_anew = claims.claim(claim_of("two"))
    claims.release(earlier)
    claims.release(taken)
    assert claims.current() == claimed_anew
    with pytest.raises(PipelineError, match="another compaction has taken over"):
        claims.require(taken)


def test_a_claim_of_an_earlier_release_is_read(claims: Claims, tmp_path: Path) -> None:
    """Its file has no word about an end."""
    (tmp_path / "_compaction").mkdir()
    (tmp_path / "_compaction" / "7").write_text(
        '{"owner": "one", "place": "p", "staging": "s", "replaced": ["file:///a"]}'
    )
    found = claims.current()
    assert found is not None
    assert (found.number, found.claim) == (7, Claim("one", "p", "s", ("file:///a",)))
