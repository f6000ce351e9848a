"""Decodes bytes to text. Bytes that cannot be decoded exactly are refused: no character is replaced or guessed."""

import codecs

from core.model.errors import EmptyContent, UnsupportedMediaType

_BYTE_ORDER_MARKS = (
    # UTF-32 comes first, because its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Codecs of Python that decode bytes to text but are no charsets of documents.
_NOT_CHARSETS = {"idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
_WITHOUT_BYTE_ORDER = {"utf-16", "utf-32"}
_WINDOWS_LATIN = {"iso8859-1": "cp1252"}
_ADVICE = "save it as UTF-8, or declare its encoding, as in text/plain; charset=windows-1252"


def decode(content: bytes, charset: str | None) -> str:
    """Returns the text of the bytes, without a byte order mark.

    The charset is, in this order, the one of the byte order mark, the declared one, or UTF-8. A declared ISO-8859-1 is
    read as windows-1252, as the Encoding Standard (encoding.spec.whatwg.org) demands.

    Args:
        content: the bytes of a document.
        charset: the charset that the content declares, by any of the charset's names; None when the content declares
            no charset.

    Raises:
        UnsupportedMediaType: the charset is unknown or leaves the byte order open, the bytes are not valid in the
            charset, or the content is binary (the decoded text contains NUL characters). The message says what the
            caller can do.
        EmptyContent: the text is empty or nothing but white space.
    """
    mark, codec = _marked_codec(content)
    codec = codec or (_declared_codec(charset) if charset else "utf-8")
    try:
        text = content[len(mark) :].decode(codec)
    except (UnicodeError, LookupError) as error:
        raise UnsupportedMediaType(f"The content is not valid {codec}: {_ADVICE}") from error
    if "\0" in text:
        raise UnsupportedMediaType(f"The content is binary: it holds NUL characters when read as {codec}")
    if not text.strip():
        raise EmptyContent("The content is empty or nothing but white space")
    return text


def _marked_codec(content: bytes) -> tuple[bytes, str | None]:
    """Returns the byte order mark with which the content begins, and the codec that the mark stands for."""
    for mark, codec in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return mark, codec
    return b"", None


def _declared_codec(charset: str) -> str:
    """Returns the name of the Python codec that decodes a declared charset."""
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError) as error:
        raise UnsupportedMediaType(f"The declared charset is unknown: {_ADVICE}") from error
    if name in _NOT_CHARSETS:
        raise UnsupportedMediaType(f"The declared charset is none of text: {_ADVICE}")
    if name in _WITHOUT_BYTE_ORDER:
        raise UnsupportedMediaType(f"{name} without a byte order mark is ambiguous: declare {name}le or {name}be")
    return _WINDOWS_LATIN.get(name, name)
