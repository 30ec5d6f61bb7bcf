"""Writes the pages of docs/reference."""

from tests.reference.pages import FOLDER, PAGES

for name, rendered in PAGES.items():
    (FOLDER / name).write_text(rendered(), encoding="utf-8")
    print(FOLDER / name)
