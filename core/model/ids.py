"""TypeIDs: a prefix, an underscore and a UUIDv7 in 26 characters of base32 (github.com/jetify-com/typeid, spec 0.3).

They sort by time. The low bits of a document's and a chunk's UUID are spoken for::

    document   48 time | 4 version | 12 random | 2 variant | 38 random | 24 zero
    chunk      the document's                                          | 4 attempt | 20 index

So a chunk's ID gives its document, the attempt that wrote it and its place, and chunks sort in document order. The low
24 bits are the last four digits, and four of the five bits of the digit before.
"""

import re
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from core.model.errors import InvalidArgument

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_AS_PYTHON_HAS_IT = str.maketrans(_ALPHABET, "0123456789abcdefghijklmnopqrstuv")
# 26 characters hold 130 bits; the first may use only 3 of its 5.
_DIGITS = re.compile(f"[0-7][{_ALPHABET}]{{25}}")

EXAMPLE_COLLECTION_ID = "col_01ksr49200e008000001000000"
EXAMPLE_DOCUMENT_ID = "doc_01ksr49200e0080c1s00000000"
EXAMPLE_CHUNK_ID = "chk_01ksr49200e0080c1s00010003"
EXAMPLE_UPLOAD_ID = "upl_01ksr49200e008000000000002"

MAX_ATTEMPT = 15
MAX_CHUNKS = 1 << 20
_LOW_BITS = 24


class TypeId(str):
    """A checked identifier of one kind.

    Raises:
        InvalidArgument: another prefix, another length, or characters that are not base32.
    """

    __slots__ = ()
    prefix: ClassVar[str]

    def __new__(cls, text: str) -> Self:
        start = cls.prefix + "_"
        if not text.startswith(start) or not _DIGITS.fullmatch(text, len(start)):
            raise InvalidArgument(f"Not an identifier of the form {start}…", field=f"{cls.prefix}_id")
        return super().__new__(cls, text)

    @classmethod
    def from_int(cls, number: int) -> Self:
        """The identifier of a 128-bit number."""
        digits = "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])
        return cls(f"{cls.prefix}_{digits}")

    def to_int(self) -> int:
        """The 128-bit number behind it."""
        return int(self[len(self.prefix) + 1 :].translate(_AS_PYTHON_HAS_IT), 32)

    @classmethod
    def new(cls, milliseconds: int, random_bits: int) -> Self:
        """A new identifier.

        Args:
            milliseconds: Unix time, 48 bits.
            random_bits: 74 random bits; the kinds that need low bits for themselves clear them.
        """
        return cls.from_int(_uuid7(milliseconds, random_bits))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls._member, core_schema.str_schema())

    @classmethod
    def _member(cls, text: str) -> Self:
        """Inside a model, the model's own error names the place."""
        try:
            return cls(text)
        except InvalidArgument as error:
            raise PydanticCustomError("identifier", "{detail}", {"detail": error.detail}) from error


def _uuid7(milliseconds: int, random_bits: int) -> int:
    """RFC 9562, section 5.7."""
    high = random_bits >> 62 & 0xFFF
    low = random_bits & (1 << 62) - 1
    return milliseconds << 80 | 7 << 76 | high << 64 | 2 << 62 | low


class CollectionId(TypeId):
    """``col_…``"""

    __slots__ = ()
    prefix = "col"


class UploadId(TypeId):
    """``upl_…``: what an uploaded object carries to find its title, type and attributes."""

    __slots__ = ()
    prefix = "upl"


class DocumentId(TypeId):
    """``doc_…``: one version of one piece of content."""

    __slots__ = ()
    prefix = "doc"

    def __new__(cls, text: str) -> Self:
        self = super().__new__(cls, text)
        if self[-5] not in "0g" or not self.endswith("0000"):
            raise InvalidArgument("Not an identifier of a document", field="doc_id")
        return self

    @classmethod
    def new(cls, milliseconds: int, random_bits: int) -> Self:
        return cls.from_int(_uuid7(milliseconds, random_bits) >> _LOW_BITS << _LOW_BITS)


class ChunkId(TypeId):
    """``chk_…``: follows from its document, the attempt that wrote it (1 to 15) and its index (0 to 1,048,575)."""

    __slots__ = ()
    prefix = "chk"

    @classmethod
    def of(cls, document: DocumentId, attempt: int, index: int) -> Self:
        """The identifier of one chunk of one attempt."""
        if not 1 <= attempt <= MAX_ATTEMPT or not 0 <= index < MAX_CHUNKS:
            raise ValueError(f"attempt {attempt}, index {index}")
        return cls.from_int(document.to_int() | attempt << 20 | index)

    @property
    def document_id(self) -> DocumentId:
        top = "g" if self[-5] >= "g" else "0"
        return str.__new__(DocumentId, f"{DocumentId.prefix}_{self[len(self.prefix) + 1 : -5]}{top}0000")

    @property
    def attempt(self) -> int:
        return _ALPHABET.index(self[-5]) & MAX_ATTEMPT

    @property
    def chunk_index(self) -> int:
        return int(self[-4:].translate(_AS_PYTHON_HAS_IT), 32)

    @property
    def generation(self) -> str:
        """What one attempt at one document wrote, as one name."""
        return generation(self.document_id, self.attempt)


def generation(document: DocumentId, attempt: int) -> str:
    """The name of all that one attempt at one document writes."""
    return f"{document}.{attempt}"
