"""Identifiers: TypeIDs, which sort by time of creation, and whose low bits tie a chunk to its document.

A TypeID is a prefix, an underscore and a UUIDv7 in 26 characters of base32 (github.com/jetify-com/typeid, spec 0.3).
The low bits of the UUIDs of documents and chunks have a meaning of their own::

    document   48 time | 4 version | 12 random | 2 variant | 38 random | 24 zero
    chunk      the same high bits as the document                      | 4 attempt | 20 index

A chunk's ID therefore says its document, the attempt that wrote the chunk and the chunk's index, and the chunks of a
document sort in document order. In base32 the low 24 bits are the last four digits and four of the five bits of the
digit before these.
"""

import re
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from core.model.errors import InvalidArgument

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_DIGIT_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_TO_PYTHON_BASE32 = str.maketrans(_ALPHABET, "0123456789abcdefghijklmnopqrstuv")
# 26 digits hold 130 bits, and a UUID has 128: the first digit uses only 3 of its 5 bits.
_DIGITS = re.compile(f"[0-7][{_ALPHABET}]{{25}}")

EXAMPLE_COLLECTION_ID = "col_01ksr49200e008000001000000"
EXAMPLE_DOCUMENT_ID = "doc_01ksr49200e0080c1s00000000"
EXAMPLE_CHUNK_ID = "chk_01ksr49200e0080c1s00010003"
EXAMPLE_UPLOAD_ID = "upl_01ksr49200e008000000000002"

MAX_ATTEMPT = 15
MAX_CHUNKS = 1 << 20
_LOW_BITS = 24


class TypeId(str):
    """A validated identifier of one kind.

    Raises:
        InvalidArgument: the text has another prefix, another length, or characters that are not base32.
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
        """Makes the identifier of a 128-bit number."""
        digits = "".join([_DIGIT_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])
        return cls(f"{cls.prefix}_{digits}")

    def to_int(self) -> int:
        """Returns the 128-bit number of the identifier."""
        return int(self[len(self.prefix) + 1 :].translate(_TO_PYTHON_BASE32), 32)

    @classmethod
    def new(cls, milliseconds: int, random_bits: int) -> Self:
        """Makes a new identifier.

        Args:
            milliseconds: the time of creation in milliseconds since 1970, 48 bits.
            random_bits: 74 random bits. Kinds of identifiers whose low bits have a meaning clear these.
        """
        return cls.from_int(_uuid7(milliseconds, random_bits))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls._validate_member, core_schema.str_schema())

    @classmethod
    def _validate_member(cls, text: str) -> Self:
        """Validates an identifier inside a model, whose own error then names the member."""
        try:
            return cls(text)
        except InvalidArgument as error:
            raise PydanticCustomError("identifier", "{detail}", {"detail": error.detail}) from error


def _uuid7(milliseconds: int, random_bits: int) -> int:
    """Makes the 128 bits of a UUID of version 7 (RFC 9562, section 5.7)."""
    high = random_bits >> 62 & 0xFFF
    low = random_bits & (1 << 62) - 1
    return milliseconds << 80 | 7 << 76 | high << 64 | 2 << 62 | low


class CollectionId(TypeId):
    """The ID of a collection: ``col_…``."""

    __slots__ = ()
    prefix = "col"


class UploadId(TypeId):
    """The ID of an upload, ``upl_…``. An uploaded object carries it, to find its title, type and attributes."""

    __slots__ = ()
    prefix = "upl"


class DocumentId(TypeId):
    """The ID of a document: ``doc_…``."""

    __slots__ = ()
    prefix = "doc"

    def __new__(cls, text: str) -> Self:
        self = super().__new__(cls, text)
        # The low 24 bits are zero: of the fifth digit from the end only the highest bit may be set.
        if self[-5] not in "0g" or not self.endswith("0000"):
            raise InvalidArgument("Not an identifier of a document", field="doc_id")
        return self

    @classmethod
    def new(cls, milliseconds: int, random_bits: int) -> Self:
        return cls.from_int(_uuid7(milliseconds, random_bits) >> _LOW_BITS << _LOW_BITS)


class ChunkId(TypeId):
    """The ID of a chunk, ``chk_…``, which says its document, its attempt (1 to 15) and its index (0 to 1,048,575)."""

    __slots__ = ()
    prefix = "chk"

    @classmethod
    def of(cls, document: DocumentId, attempt: int, index: int) -> Self:
        """Makes the ID of a chunk from its document, the attempt that writes it and its index."""
        if not 1 <= attempt <= MAX_ATTEMPT or not 0 <= index < MAX_CHUNKS:
            raise ValueError(f"A chunk cannot have attempt {attempt} and index {index}")
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
        return int(self[-4:].translate(_TO_PYTHON_BASE32), 32)

    @property
    def generation(self) -> str:
        """The generation of the chunk: its document and its attempt."""
        return generation(self.document_id, self.attempt)


def generation(document: DocumentId, attempt: int) -> str:
    """Names a generation: a document and an attempt, as vectors carry it."""
    return f"{document}.{attempt}"
