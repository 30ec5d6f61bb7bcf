"""`barnabas completion`: prints the completion script of a shell (`completing`)."""

from __future__ import annotations

import argparse
from typing import Final

from barnabas.cli.exit_codes import ExitCode

_DESCRIPTION: Final = """\
Print the script that completes command lines of barnabas in a shell: commands, options, file names, and the
names of topics and groups, which the shell asks from the broker.
"""
_EXAMPLES: Final = """\
examples:
  eval "$(barnabas completion bash)"                   in ~/.bashrc
  eval "$(barnabas completion zsh)"                    in ~/.zshrc, behind compinit
  barnabas completion fish > ~/.config/fish/completions/barnabas.fish
"""
_SHELLS: Final = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", metavar="SHELL", choices=_SHELLS, help=", ".join(_SHELLS))


def run(options: argparse.Namespace) -> int:
    from barnabas.cli.commands.completing import script

    print(script(options.shell))
    return ExitCode.DONE
