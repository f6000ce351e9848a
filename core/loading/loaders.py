"""The registry of loaders: which loader reads which media type.

To add a loader, write it in a module of its own in this room and add it to ``LOADERS``. The media types and file
suffixes that the registry knows, the texts of its refusals and the description of the engine all come from the loaders'
attributes.
"""

from email.message import Message
from pathlib import PurePosixPath

from core.loading.html import HtmlLoader
from core.loading.markdown import MarkdownLoader
from core.loading.text import TextLoader
from core.loading.types import Loader
from core.model.component import Component
from core.model.errors import UnsupportedMediaType

LOADERS: tuple[Loader, ...] = (TextLoader(), MarkdownLoader(), HtmlLoader())

GENERIC_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""The media types that an object store reports for an object whose uploader declared no type."""

# These types begin with text/, but mostly markup or cells would show if they were read as plain text.
_NOT_PLAIN = frozenset(
    {"text/csv", "text/enriched", "text/richtext", "text/rtf", "text/tab-separated-values", "text/xml"}
)


class Loaders:
    """Finds the loader that reads a media type.

    ``text/*`` stands for every text type that has no loader of its own and that a reader can read as plain text. CSV,
    RTF and XML are no such types.
    """

    def __init__(self) -> None:
        self._by_type = {media_type: loader for loader in LOADERS for media_type in loader.media_types}
        self._types_by_suffix: dict[str, str] = {}
        for loader in LOADERS:
            self._types_by_suffix.update(loader.suffixes)

    @property
    def content_types(self) -> list[str]:
        """The media types that the loaders read."""
        return list(self._by_type)

    def find(self, source_type: str) -> tuple[Loader, str | None]:
        """Returns the loader that reads a media type, and the charset that the media type declares.

        Args:
            source_type: a media type, in upper or lower case, with an optional ``charset`` parameter.

        Raises:
            UnsupportedMediaType: no loader reads the media type. The message lists the types that loaders read.
        """
        media_type = source_type.partition(";")[0].strip().lower()
        loader = self._by_type.get(media_type)
        if loader is None and media_type.startswith("text/") and media_type not in _NOT_PLAIN | {"text/"}:
            loader = self._by_type.get("text/*")
        if loader is None or media_type == "text/*":
            raise UnsupportedMediaType(f"No loader reads this source type; {self._supported()}")
        return loader, _charset(source_type)

    def guess(self, file_name: str) -> str:
        """Returns the media type that a file name's suffix stands for.

        Callers use this for an object whose declared type is in ``GENERIC_TYPES``.

        Raises:
            UnsupportedMediaType: no loader reads files with this suffix. The message lists the suffixes and types
                that loaders read.
        """
        media_type = self._types_by_suffix.get(PurePosixPath(file_name).suffix.lower())
        if media_type is None:
            raise UnsupportedMediaType(
                f"The content declares no type, and its name ends in none of {', '.join(self._types_by_suffix)}; "
                f"{self._supported()}"
            )
        return media_type

    def describe(self) -> Component:
        """Describes the loaders for the engine's list of components."""
        return Component(name="loaders", type="media_type", configured=True, content_types=self.content_types)

    def _supported(self) -> str:
        return f"supported are {', '.join(self.content_types)}"


def _charset(source_type: str) -> str | None:
    header = Message()
    header["Content-Type"] = source_type
    return header.get_content_charset() or None
