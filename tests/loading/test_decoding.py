"""Bytes become text that is right, or they are refused."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.loading.decoding import decode
from core.model.errors import EmptyContent, UnsupportedMediaType

WORDS = "Grüße, naïve café — “цена” 12 €, 漢字 👩‍🚀"
LATIN = "Grüße, naïve café"


@pytest.mark.parametrize(
    ("content", "charset", "text"),
    [
        (WORDS.encode(), None, WORDS),
        (WORDS.encode(), "utf-8", WORDS),
        (codecs.BOM_UTF8 + WORDS.encode(), None, WORDS),
        (WORDS.encode("utf-16"), None, WORDS),
        (codecs.BOM_UTF16_BE + WORDS.encode("utf-16-be"), None, WORDS),
        (WORDS.encode("utf-32"), None, WORDS),
        (codecs.BOM_UTF32_BE + WORDS.encode("utf-32-be"), None, WORDS),
        (WORDS.encode("utf-16-le"), "UTF-16LE", WORDS),
        (LATIN.encode("latin-1"), "ISO-8859-1", LATIN),
        ("“12 €”".encode("cp1252"), "windows-1252", "“12 €”"),
        ("цена".encode("koi8-r"), "koi8-r", "цена"),
        ("漢字仮名".encode("shift_jis"), "Shift_JIS", "漢字仮名"),
        ("漢字仮名".encode("iso2022_jp"), "iso-2022-jp", "漢字仮名"),
        ("汉字".encode("gb18030"), "gb18030", "汉字"),
    ],
)
def test_each_encoding_is_read_as_it_is_declared_or_marked(content: bytes, charset: str | None, text: str) -> None:
    assert decode(content, charset) == text


def test_a_byte_order_mark_outweighs_a_declared_charset() -> None:
    assert decode(codecs.BOM_UTF8 + LATIN.encode(), "iso-8859-1") == LATIN


def test_latin_1_is_read_as_windows_1252_as_browsers_do() -> None:
    assert decode(b"\x93quoted\x94", "iso-8859-1") == "“quoted”"


@pytest.mark.parametrize(
    ("content", "charset"),
    [
        (LATIN.encode("latin-1"), None),
        (LATIN.encode("latin-1"), "utf-8"),
        (LATIN.encode(), "us-ascii"),
        ("“".encode("cp1252") + b"\x81", "windows-1252"),
        (b"\xed\xa0\x80", None),
        (b"\xff\xfea", None),
        (WORDS.encode("utf-16-le"), "utf-16"),
        (WORDS.encode("utf-16-le"), None),
        (b"a", "no-such-charset"),
        (b"a", "a\0b"),
        (b"a", "rot13"),
        (b"a", "base64"),
        (b"\\u0041", "unicode_escape"),
        (b"a", "idna"),
        (b"+AGE-", "utf-7"),
    ],
)
def test_what_is_not_valid_in_its_encoding_is_refused(content: bytes, charset: str | None) -> None:
    with pytest.raises(UnsupportedMediaType):
        decode(content, charset)


def test_a_refusal_says_to_declare_a_charset() -> None:
    with pytest.raises(UnsupportedMediaType, match="declare its encoding"):
        decode(LATIN.encode("latin-1"), None)


@pytest.mark.parametrize(
    "content", [b"a\0b", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"PK\x03\x04\x14\0\0\0", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3"]
)
def test_binary_content_is_refused(content: bytes) -> None:
    with pytest.raises(UnsupportedMediaType):
        decode(content, None)


@pytest.mark.parametrize("content", [b"", b" \r\n\t", codecs.BOM_UTF8, "\u2003\u3000".encode()])
def test_nothing_but_white_space_is_empty(content: bytes) -> None:
    with pytest.raises(EmptyContent):
        decode(content, None)


def test_line_ends_and_white_space_stay_as_they_are() -> None:
    assert decode(b"\r\n a\r\nb\rc\n\n", None) == "\r\n a\r\nb\rc\n\n"


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1).filter(str.strip))
def test_any_text_comes_back_from_utf_8(text: str) -> None:
    assert decode(codecs.BOM_UTF8 + text.encode(), None) == text


@given(st.binary(max_size=64))
def test_any_bytes_are_read_exactly_or_refused(content: bytes) -> None:
    try:
        text = decode(content, "utf-8")
    except (UnsupportedMediaType, EmptyContent):
        return
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        assert text.encode() == content.removeprefix(codecs.BOM_UTF8)
