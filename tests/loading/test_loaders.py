"""The source type picks the loader."""

import pytest

from core.loading.loaders import GENERIC_TYPES, Loaders
from core.model.errors import UnsupportedMediaType


@pytest.mark.parametrize(
    ("source_type", "loader", "charset"),
    [
        ("text/plain", "text", None),
        ("TEXT/Plain", "text", None),
        (" text/plain ; Charset=UTF-8", "text", "utf-8"),
        ('text/plain; format=flowed; charset="ISO-8859-1"', "text", "iso-8859-1"),
        ("text/plain; charset=", "text", None),
        ("text/x-python", "text", None),
        ("text/markdown; variant=GFM", "markdown", None),
        ("text/x-markdown", "markdown", None),
        ("text/html;charset=windows-1252", "html", "windows-1252"),
        ("application/xhtml+xml", "html", None),
    ],
)
def test_a_media_type_picks_its_loader_and_gives_its_charset(
    source_type: str, loader: str, charset: str | None
) -> None:
    found, declared = Loaders().find(source_type)
    assert (found.name, declared) == (loader, charset)


@pytest.mark.parametrize(
    "source_type", ["", "text", "text/", "text/*", "plain", "application/pdf", "image/png", "text/csv", "text/rtf"]
)
def test_a_type_without_a_loader_is_refused_with_a_list_of_those_there_are(source_type: str) -> None:
    with pytest.raises(UnsupportedMediaType) as refused:
        Loaders().find(source_type)
    assert all(content_type in refused.value.detail for content_type in Loaders().content_types)


@pytest.mark.parametrize(
    ("name", "source_type"),
    [
        ("notes.txt", "text/plain"),
        ("a/b.c/README.MD", "text/markdown"),
        ("page.htm", "text/html"),
        ("page.xhtml", "application/xhtml+xml"),
    ],
)
def test_a_file_name_says_its_type(name: str, source_type: str) -> None:
    assert Loaders().guess(name) == source_type


@pytest.mark.parametrize("name", ["", "noext", "a.md/b", "scan.pdf", "archive.md.gz"])
def test_a_file_name_that_says_nothing_is_refused_with_a_list(name: str) -> None:
    with pytest.raises(UnsupportedMediaType, match="text/markdown"):
        Loaders().guess(name)


def test_the_types_of_objects_that_nobody_declared_have_no_loader() -> None:
    for generic in GENERIC_TYPES:
        with pytest.raises(UnsupportedMediaType):
            Loaders().find(generic)


def test_the_loaders_describe_what_they_read() -> None:
    component = Loaders().describe()
    assert component.configured
    assert {"text/plain", "text/markdown", "text/html"} <= set(component.content_types)


def test_the_text_loader_drops_the_byte_order_mark_and_nothing_else() -> None:
    loader, charset = Loaders().find("text/plain")
    loaded = loader.load(b"\xef\xbb\xbf# no heading\r\n\r\n", charset)
    assert (loaded.text, loaded.headings, loaded.title, loaded.attributes) == ("# no heading\r\n\r\n", (), "", {})


@pytest.mark.parametrize("source_type", ["text/plain", "text/markdown", "text/html"])
def test_each_loader_checks_without_loading(source_type: str) -> None:
    loader, charset = Loaders().find(source_type)
    loader.check(b"fine", charset)
    with pytest.raises(UnsupportedMediaType):
        loader.check(b"\xff\xff\0", charset)
