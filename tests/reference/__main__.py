"""Writes the generated pages, and the generated blocks of the others."""

from tests.reference.pages import rendered_pages

for path, text in rendered_pages().items():
    if path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        print(path)
