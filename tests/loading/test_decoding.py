"""Bytes are decoded exactly, or they are refused."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.loading.decoding import decode
from core.model.errors import EmptyContent, UnsupportedMediaType

WORDS = "Grüße, naïve café — “цена” 12 €, 漢字 👩‍🚀"
LATIN = "Grüße, naïve café"
JAPANESE = "漢字仮名"
ADVICE = "declare its encoding"


@pytest.mark.parametrize(
    ("content", "charset", "text"),
    [
        *((WORDS.encode(codec), None, WORDS) for codec in ("utf-8", "utf-8-sig", "utf-16", "utf-32")),
        (codecs.BOM_UTF16_BE + WORDS.encode("utf-16-be"), None, WORDS),
        (codecs.BOM_UTF32_BE + WORDS.encode("utf-32-be"), None, WORDS),
        pytest.param(codecs.BOM_UTF8 + LATIN.encode(), "iso-8859-1", LATIN, id="byte order mark outweighs declaration"),
        *((WORDS.encode(charset), charset, WORDS) for charset in ("UTF-8", "UTF-16LE", "gb18030")),
        *((JAPANESE.encode(charset), charset, JAPANESE) for charset in ("Shift_JIS", "iso-2022-jp")),
        *[(LATIN.encode("latin-1"), "ISO-8859-1", LATIN), ("“12 €”".encode("cp1252"), "windows-1252", "“12 €”")],
        ("цена".encode("koi8-r"), "koi8-r", "цена"),
        pytest.param(b"\x93quoted\x94", "iso-8859-1", "“quoted”", id="Latin-1 is read as windows-1252"),
        pytest.param(b"\r\n a\r\nb\rc\n\n", None, "\r\n a\r\nb\rc\n\n", id="line ends and white space stay"),
    ],
)
def test_bytes_are_decoded_by_mark_declaration_or_as_utf_8(content: bytes, charset: str | None, text: str) -> None:
    assert decode(content, charset) == text


@pytest.mark.parametrize(
    ("content", "charset", "advice"),
    [
        *((LATIN.encode("latin-1"), charset, ADVICE) for charset in (None, "utf-8", "us-ascii")),
        ("“".encode("cp1252") + b"\x81", "windows-1252", ADVICE),
        *((content, None, ADVICE) for content in (b"\xed\xa0\x80", b"\xff\xfea", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3")),
        (WORDS.encode("utf-16-le"), None, ADVICE),
        (WORDS.encode("utf-16-le"), "utf-16", "declare utf-16le or utf-16be"),
        *((b"a", charset, ADVICE) for charset in ("no-such-charset", "a\0b", "rot13", "base64", "idna")),
        *[(b"\\u0041", "unicode_escape", ADVICE), (b"+AGE-", "utf-7", ADVICE)],
        *[(b"a\0b", None, "is binary"), (b"PK\x03\x04\x14\0\0\0", None, "is binary")],
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", None, ADVICE),
    ],
)
def test_binary_or_wrongly_declared_bytes_are_refused(content: bytes, charset: str | None, advice: str) -> None:
    with pytest.raises(UnsupportedMediaType, match=advice):
        decode(content, charset)


@pytest.mark.parametrize("content", [b"", b" \r\n\t", codecs.BOM_UTF8, "\u2003\u3000".encode()])
def test_nothing_but_white_space_is_refused_as_empty_content(content: bytes) -> None:
    with pytest.raises(EmptyContent):
        decode(content, None)


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1).filter(str.strip))
def test_every_text_that_is_encoded_as_utf_8_is_decoded_to_itself(text: str) -> None:
    assert decode(codecs.BOM_UTF8 + text.encode(), None) == text


@given(st.binary(max_size=64))
def test_arbitrary_bytes_are_decoded_exactly_or_refused(content: bytes) -> None:
    try:
        text = decode(content, "utf-8")
    except (UnsupportedMediaType, EmptyContent):
        return
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        assert text.encode() == content.removeprefix(codecs.BOM_UTF8)
