"""Responses of the console's files: compression, validators, and the headers that protect the page."""

from __future__ import annotations

import gzip
from http import HTTPStatus

import pytest

from barnabas.broker.http.console_file import ConsoleFile, FileResponse

CONTENT = b"run() " * 100
COMPRESSED = gzip.compress(CONTENT, mtime=0)
FILE = ConsoleFile(CONTENT, "text/javascript", COMPRESSED)


def respond(file: ConsoleFile = FILE, **headers: str) -> FileResponse:
    return file.respond({name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("deflate, gzip, br, zstd", True),
        ("br;q=1.0, gzip;q=0.2", True),
        ("gzip; q=0.001", True),
        ("", False),
        ("br", False),
        ("identity, gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("x-gzipped", False),
    ],
)
def test_a_client_gets_gzip_only_if_it_asks_for_it(accepted: str, is_compressed: bool) -> None:
    status, headers, content = respond(accept_encoding=accepted)
    assert status is HTTPStatus.OK
    assert content == (COMPRESSED if is_compressed else CONTENT)
    assert headers.get("Content-Encoding") == ("gzip" if is_compressed else None)
    assert (headers["Vary"], headers["Content-Type"]) == ("Accept-Encoding", "text/javascript")


def test_a_file_without_a_compressed_form_is_sent_as_it_is() -> None:
    file = ConsoleFile(CONTENT, "text/javascript", None)
    assert respond(file, accept_encoding="gzip").content == CONTENT


def test_both_forms_have_tags_of_their_own_that_depend_on_the_content() -> None:
    tags = {
        respond().headers["ETag"],
        respond(accept_encoding="gzip").headers["ETag"],
        respond(ConsoleFile(b"other", "text/javascript", None)).headers["ETag"],
    }
    assert len(tags) == 3
    assert respond(ConsoleFile(CONTENT, "text/css", None)).headers["ETag"] == respond().headers["ETag"]


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', '"a" ,W/{}', "*"])
@pytest.mark.parametrize("accepted", ["", "gzip"])
def test_a_client_that_has_the_content_gets_it_not_again(form: str, accepted: str) -> None:
    etag = respond(accept_encoding=accepted).headers["ETag"]
    status, headers, content = respond(accept_encoding=accepted, if_none_match=form.format(etag))
    assert (status, content, headers["ETag"]) == (HTTPStatus.NOT_MODIFIED, b"", etag)
    assert headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("given", ['"other"', "", '"*"'])
def test_a_client_that_has_another_content_gets_this_one(given: str) -> None:
    assert respond(if_none_match=given).content == CONTENT


def test_the_tag_of_the_compressed_form_is_not_that_of_the_other_one() -> None:
    etag = respond(accept_encoding="gzip").headers["ETag"]
    assert respond(if_none_match=etag).content == CONTENT
