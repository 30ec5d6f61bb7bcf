"""The text of a distinguished name, as Java writes it (RFC 2253; `X500Principal.getName`).

Rules for principals are written for this text. OpenSSL and other libraries write other orders, other names of
attributes, and other escapes. Pure.
"""

from collections.abc import Iterator
from typing import Final

_KEYWORDS: Final = {
    b"\x55\x04\x03": "CN",
    b"\x55\x04\x06": "C",
    b"\x55\x04\x07": "L",
    b"\x55\x04\x08": "ST",
    b"\x55\x04\x09": "STREET",
    b"\x55\x04\x0a": "O",
    b"\x55\x04\x0b": "OU",
    b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x19": "DC",
    b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x01": "UID",
}
"""The attributes with a keyword in RFC 2253, by their encoded object identifiers."""

_STRING_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString."""

_ESCAPED: Final = frozenset(',=+<>#;"\\')
_LONG_LENGTH: Final = 0x80


def distinguished_name(encoded: bytes) -> str:
    """The text of a `Name` in DER (RFC 5280, section 4.1.2.4). Raises `ValueError` if it is none."""
    try:
        ((_, relative_names, _),) = _elements(encoded)
        texts = ["+".join(_attributes(names)) for _, names, _ in _elements(relative_names)]
    except IndexError:
        raise ValueError("the name ends too early") from None
    return ",".join(reversed(texts))


def _attributes(names: bytes) -> Iterator[str]:
    for _, attribute, _ in _elements(names):
        (_, identifier, _), (tag, content, whole) = _elements(attribute)
        keyword = _KEYWORDS.get(identifier)
        if keyword is None or tag not in _STRING_TAGS:
            yield f"{keyword or _dotted(identifier)}=#{whole.hex()}"
        else:
            yield f"{keyword}={_escaped(content.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    written = "".join(
        f"\\{character}" if character in _ESCAPED else "\\00" if character == "\0" else character
        for character in text
    )
    inner = written.strip(" ")
    before = len(written) - len(written.lstrip(" "))
    return "\\ " * before + inner + "\\ " * (len(written) - before - len(inner))


def _dotted(identifier: bytes) -> str:
    """An object identifier in numbers with dots."""
    numbers: list[int] = []
    number = 0
    for octet in identifier:
        number = number << 7 | octet & 0x7F
        if octet < _LONG_LENGTH:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Tag, content, and the whole encoding of each element."""
    position = 0
    while position < len(data):
        start = position
        tag, length = data[position], data[position + 1]
        position += 2
        if length >= _LONG_LENGTH:
            size = length & 0x7F
            length = int.from_bytes(data[position : position + size])
            position += size
        end = position + length
        if end > len(data):
            raise ValueError("the name ends too early")
        yield tag, data[position:end], data[start:end]
        position = end
