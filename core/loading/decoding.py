"""Bytes to text: right or refused, never replaced and never guessed."""

import codecs

from core.model.errors import EmptyContent, UnsupportedMediaType

_MARKS = (
    # UTF-32's little-endian mark begins with UTF-16's.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NOT_CHARSETS = {"idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
_WITHOUT_BYTE_ORDER = {"utf-16", "utf-32"}
_WINDOWS_LATIN = {"iso8859-1": "cp1252"}
_ADVICE = "save it as UTF-8, or declare its encoding, as in text/plain; charset=windows-1252"


def decode(content: bytes, charset: str | None) -> str:
    """The text of bytes, without a byte order mark.

    A byte order mark decides; else the declared charset; else the bytes are UTF-8. ISO-8859-1 is read as
    windows-1252, as the Encoding Standard (encoding.spec.whatwg.org) has it.

    Args:
        charset: what the content declares, by any of its names; None when it declares nothing.

    Raises:
        UnsupportedMediaType: the charset is unknown or says no byte order, the bytes are not valid in it,
            or the content is binary (it holds NUL characters).
        EmptyContent: nothing but white space.
    """
    mark, codec = next(((mark, codec) for mark, codec in _MARKS if content.startswith(mark)), (b"", None))
    codec = codec or (_codec(charset) if charset else "utf-8")
    try:
        text = content[len(mark) :].decode(codec)
    except (UnicodeError, LookupError) as error:
        raise UnsupportedMediaType(f"The content is not valid {codec}: {_ADVICE}") from error
    if "\0" in text:
        raise UnsupportedMediaType(f"The content is binary: it holds NUL characters when read as {codec}")
    if not text.strip():
        raise EmptyContent("The content is empty or nothing but white space")
    return text


def _codec(charset: str) -> str:
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError) as error:
        raise UnsupportedMediaType(f"The declared charset is unknown: {_ADVICE}") from error
    if name in _NOT_CHARSETS:
        raise UnsupportedMediaType(f"The declared charset is none of text: {_ADVICE}")
    if name in _WITHOUT_BYTE_ORDER:
        raise UnsupportedMediaType(f"{name} without a byte order mark is ambiguous: declare {name}le or {name}be")
    return _WINDOWS_LATIN.get(name, name)
