"""The command line of `barnabas dlq`: a wrong one is one line and exit code 2."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from barnabas.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--bootstrap", "nowhere:x"], "--bootstrap: 'nowhere:x' is not the address of a broker"),
        (["--since", "yesterday"], "--since: 'yesterday' is not a time such as 2026-01-31T12:00"),
        (["--until", "2026-13-01"], "--until: '2026-13-01' is not a time"),
        (["--offsets", "5", "--offsets", "9-8"], "--offsets: '9-8' is not [PARTITION:]FIRST[-LAST]"),
        (["--security", "/nonexistent"], "--security: The configuration file /nonexistent cannot be read"),
        (["--batch", "1001"], "--batch is at most 1000."),
        (["--to", "dlq.orders"], "--to is the dead letter topic itself; name another one."),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dlq", "redrive", "dlq.orders", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert complaint in output.err
    assert output.err.count("\n") == 1


def test_an_unknown_setting_of_security_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text("security.protocl=SSL\n")
    assert main(["dlq", "list", "dlq.orders", "--security", str(settings)]) == 2
    assert "--security: security.protocl: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["redrive", "dlq.orders", "--rate", "0"],
        ["redrive", "dlq.orders", "--rate", "nan"],
        ["redrive", "dlq.orders", "--batch", "0"],
        ["show", "dlq.orders", "--limit", "-1"],
        ["redrive", "dlq.orders", "--waiting"],
        ["list"],
        [],
    ],
)
def test_a_malformed_command_line_is_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dlq", *arguments])
    assert ended.value.code == 2
    assert "usage: barnabas dlq" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["list", "show", "redrive"])
def test_the_command_fails_without_a_broker(
    action: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.cli.dead_letters.session.GIVE_UP_MS", 1)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        assert main(["dlq", action, "dlq.orders", "--bootstrap", address]) == 4
    output = capsys.readouterr()
    assert "cannot be reached" in output.err
    assert output.err.count("\n") == 1
