"""Arguments that several commands have."""

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

import pytest

from barnabas.pipeline.cli.arguments import add_server_arguments, names, server_options
from barnabas.pipeline.errors import OptionError


def parsed(*arguments: str) -> dict[str, str]:
    parser = ArgumentParser()
    add_server_arguments(parser)
    return server_options(parser.parse_args(["--servers", "h:1", *arguments]))


def test_options_come_in_the_form_of_the_formats() -> None:
    assert parsed("--option", "kafka.x=a=b", "--option", "y=") == {
        "servers": "h:1",
        "kafka.x": "a=b",
        "y": "",
    }


def test_options_may_come_from_a_file_and_the_command_line_wins(tmp_path: Path) -> None:
    file = tmp_path / "options"
    file.write_text("# of the cluster\n\nkafka.sasl.password=from=the file\n y = 1\n")
    assert parsed("--options-file", str(file), "--option", "y=2") == {
        "servers": "h:1",
        "kafka.sasl.password": "from=the file",
        "y": "2",
    }


def test_a_line_that_is_no_option_is_named(tmp_path: Path) -> None:
    file = tmp_path / "options"
    file.write_text("nonsense\n")
    with pytest.raises(OptionError, match=r"^--options-file: 'nonsense' is not NAME=VALUE"):
        parsed("--options-file", str(file))


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        parsed("--options-file", "nowhere")


@pytest.mark.parametrize(("text", "found"), [("a", ("a",)), (" a, b,a", ("a", "b"))])
def test_names_stand_between_commas(text: str, found: tuple[str, ...]) -> None:
    assert names(text) == found


@pytest.mark.parametrize("text", ["", "a,,b", ","])
def test_a_name_that_is_empty_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        names(text)
