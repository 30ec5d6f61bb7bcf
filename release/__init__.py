"""Builds the files of a release: a source distribution, wheels, a bill of materials, the facts of the build.

`make dist` runs `python -m release`. docs/installing.md describes the files for users,
docs/decisions/0036-a-site-by-sphinx-and-reproducible-artefacts.md has the reasons.
"""
