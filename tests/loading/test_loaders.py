"""A content's media type or file name decides which loader reads the content."""

from collections.abc import Callable

import pytest

from core.loading.loaders import GENERIC_TYPES, LOADERS, Loaders
from core.loading.text import TextLoader
from core.loading.types import Loader
from core.model.errors import UnsupportedMediaType


@pytest.mark.parametrize(
    ("source_type", "loader", "charset"),
    [
        *((name, "text", None) for name in ("text/plain", "TEXT/Plain", "text/plain; charset=", "text/x-python")),
        (" text/plain ; Charset=UTF-8", "text", "utf-8"),
        ('text/plain; format=flowed; charset="ISO-8859-1"', "text", "iso-8859-1"),
        *((name, "markdown", None) for name in ("text/markdown; variant=GFM", "text/x-markdown")),
        *[("text/html;charset=windows-1252", "html", "windows-1252"), ("application/xhtml+xml", "html", None)],
    ],
)
def test_a_media_type_decides_loader_and_charset(source_type: str, loader: str, charset: str | None) -> None:
    chosen, declared = Loaders().find(source_type)
    assert (chosen.name, declared) == (loader, charset)


@pytest.mark.parametrize(
    ("name", "source_type"),
    [
        *[("notes.txt", "text/plain"), ("a/b.c/README.MD", "text/markdown")],
        *[("page.htm", "text/html"), ("page.xhtml", "application/xhtml+xml")],
    ],
)
def test_the_suffix_of_a_file_name_decides_the_media_type(name: str, source_type: str) -> None:
    assert Loaders().guess(name) == source_type


Lookup = Callable[[Loaders, str], object]
UNREAD_TYPES = ("text", "text/", "text/*", "plain", "application/pdf", "image/png", "text/csv", "text/rtf")
UNREAD_NAMES = ("", "noext", "a.md/b", "scan.pdf", "archive.md.gz")


@pytest.mark.parametrize(
    ("lookup", "name"),
    [
        *((Loaders.find, source_type) for source_type in (*sorted(GENERIC_TYPES), *UNREAD_TYPES)),
        *((Loaders.guess, file_name) for file_name in UNREAD_NAMES),
    ],
)
def test_an_unread_type_or_suffix_is_refused_with_a_list_of_read_types(lookup: Lookup, name: str) -> None:
    with pytest.raises(UnsupportedMediaType) as refused:
        lookup(Loaders(), name)
    assert all(content_type in refused.value.detail for content_type in Loaders().content_types)


def test_the_description_of_the_loaders_lists_the_media_types_that_they_read() -> None:
    component = Loaders().describe()
    assert component.configured
    assert {"text/plain", "text/markdown", "text/html"} <= set(component.content_types)


def test_the_text_loader_removes_the_byte_order_mark_and_nothing_else() -> None:
    loaded = TextLoader().load(b"\xef\xbb\xbf# no heading\r\n\r\n", None)
    assert (loaded.text, loaded.headings, loaded.title, loaded.attributes) == ("# no heading\r\n\r\n", (), "", {})


@pytest.mark.parametrize("loader", LOADERS, ids=lambda loader: loader.name)
def test_every_loader_refuses_content_that_it_cannot_decode_before_it_loads(loader: Loader) -> None:
    loader.check(b"fine", None)
    with pytest.raises(UnsupportedMediaType):
        loader.check(b"\xff\xff\0", None)
    assert all(media_type in loader.media_types for media_type in loader.suffixes.values())
