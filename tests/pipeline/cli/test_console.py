"""The result goes to standard output, all else to standard error."""

import io
import json

from barnabas.pipeline.cli.console import Console


def run(*, as_json: bool, quiet: bool = False) -> tuple[str, str]:
    output, errors = io.StringIO(), io.StringIO()
    console = Console(as_json=as_json, quiet=quiet, output=output, errors=errors)
    with console.progress("Reading", total=1) as progress:
        progress.advance(1)
    console.note("One setting was refused.")
    console.result({"records": 1, "topic": "bücher"}, ["1 record of bücher"])
    return output.getvalue(), errors.getvalue()


def test_a_person_gets_lines() -> None:
    output, errors = run(as_json=False)
    assert output == "1 record of bücher\n"
    assert errors.splitlines()[-1] == "barnabas: One setting was refused."
    assert "Reading" in errors


def test_a_program_gets_one_json_object_and_nothing_else() -> None:
    output, _ = run(as_json=True)
    assert json.loads(output) == {"records": 1, "topic": "bücher"}
    assert output.count("\n") == 1


def test_quiet_leaves_out_progress_and_keeps_notes() -> None:
    _, errors = run(as_json=False, quiet=True)
    assert errors == "barnabas: One setting was refused.\n"
