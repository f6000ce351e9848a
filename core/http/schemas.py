"""The bodies, queries and answers whose form over HTTP differs from the engine's own models."""

import base64
from collections.abc import Callable
from email.message import Message
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_args

from pydantic import AfterValidator, ConfigDict, Field, StrictFloat, StrictInt, ValidationError, WrapValidator
from pydantic_core import PydanticCustomError

from core.http.problem import EXAMPLE_PROBLEM, Problem, invalid_input
from core.model.base import Model, with_example
from core.model.chunk import Attributes
from core.model.collection import Metadata
from core.model.context import AssembleOptions, ChunkRef
from core.model.document import (
    DocumentState,
    Source,
    SourceKey,
    SourceType,
    SourceVersion,
    Title,
    validate_source_key,
)
from core.model.errors import InvalidArgument, PayloadTooLarge, WeftError
from core.model.ids import EXAMPLE_CHUNK_ID, EXAMPLE_COLLECTION_ID, CollectionId, DocumentId
from core.model.ingest import EXAMPLE_RESULT, IngestInput, IngestResult
from core.model.page import Order, Page, PageRequest
from core.model.query import EXAMPLE_OPTIONS, MAX_QUERY_COLLECTIONS, RetrieveOptions, RetrieveQuery, Strategy

T = TypeVar("T")

_CONTENTS = {"content", "content_base64"}

_FILTER_DESCRIPTION = (
    "A filter that the attributes of chunks must fulfil: attributes by name, each with a value or with operators. The "
    "operators eq, ne, gt, gte, lt and lte take one value, in and nin take a list, exists takes true or false. All "
    "attributes and all operators of a filter must hold. {and: [filter, …]}, {or: [filter, …]} and {not: filter} join "
    "filters; attributes that are called and, or or not cannot be filtered by. A comparison with an attribute that is "
    "a list holds when it holds for any element. A text that is an RFC 3339 date-time with its zone is a date. Two "
    'values of different kinds, such as 1 and "1", are never equal.'
)


def _validate_key(key: str) -> str:
    try:
        return validate_source_key(key)
    except InvalidArgument as error:
        raise PydanticCustomError("source_key", "{detail}", {"detail": error.detail}) from error


class PageQuery(Model):
    """The query parameters of every listing."""

    limit: int = Field(default=20, ge=1, le=100, description="The most items of a page")
    page_token: str | None = Field(default=None, max_length=4096, description="The previous page's `next_page_token`")
    order: Order = Order.NEWEST
    include_total: bool = Field(default=False, description="Whether the answer counts all items as `total`")

    def page(self) -> PageRequest:
        """Makes the engine's request for a page."""
        return PageRequest(limit=self.limit, token=self.page_token, order=self.order, total=self.include_total)


class CollectionsQuery(PageQuery):
    """The query parameters of a listing of collections."""

    name: str | None = Field(default=None, max_length=256, description="Lists the collection of exactly this name")
    name_contains: str | None = Field(
        default=None, max_length=256, description="Lists collections with this text in their name"
    )


class DocumentsQuery(PageQuery):
    """The query parameters of a listing of documents."""

    collection_id: CollectionId | None = None
    state: DocumentState | None = None
    source_key: SourceKey | None = Field(default=None, description="A source key or source ID; needs `collection_id`")


class ChunksQuery(PageQuery):
    """The query parameters of a listing of chunks. A collection or a document must be named."""

    collection_id: CollectionId | None = None
    document_id: DocumentId | None = None


class SourceQuery(Model):
    """The query parameter that names a source of a collection."""

    key: Annotated[str, AfterValidator(_validate_key)] = Field(description="The key of the source, or its source ID")


def _add_example_page(schema: dict[str, Any], page: type[Any]) -> None:
    """Gives a page's schema an example that holds the example of its items."""
    [item] = get_args(page.model_fields["items"].annotation)
    if isinstance(item, type) and issubclass(item, Model):
        extra: Any = item.model_config["json_schema_extra"]
        schema["example"] = {"items": [extra["example"]], "next_page_token": None}


class ListAnswer(Model, Generic[T]):
    """One page of a listing.

    Attributes:
        items: The items of the page.
        next_page_token: The token of the next page; null on the last page.
        total: The number of all items of the listing, if the call asked for it.
    """

    model_config = ConfigDict(json_schema_extra=_add_example_page)

    items: list[T]
    next_page_token: str | None = None
    total: int | None = Field(default=None, exclude_if=lambda total: total is None)

    @classmethod
    def of(cls, page: Page[T]) -> "ListAnswer[T]":
        """Makes the answer of the engine's page."""
        return cls(items=page.items, next_page_token=page.next_page_token, total=page.total)


_EXAMPLE_BODY: dict[str, Any] = {
    "content": "# Looms\n\nA loom holds the warp threads under tension.",
    "title": "Looms",
    "source": "https://example.org/looms.md",
    "source_type": "text/markdown",
    "source_key": "looms.md",
    "attributes": {"lang": "en", "year": 2024},
}


class DocumentBody(Model):
    """A document to ingest, with its content as text or as bytes.

    Attributes:
        content: The content as text; absent when ``content_base64`` is there.
        content_base64: The content as bytes in base64; absent when ``content`` is there.
        source: Where the content came from, for citations.
        source_type: The media type of the content.
        source_key: A stable name of the source. With it the ingest is an upsert: it replaces the source's content.
        source_version: The version of the source, 1 to 64 hex digits, compared as a number; needs a source key. A
            version lower than the source has seen is not ingested.
        metadata: Texts by name, which come back with every hit.
        attributes: Values by name, to filter by.
    """

    model_config = with_example(_EXAMPLE_BODY)

    content: str | None = None
    content_base64: str | None = None
    title: Title = ""
    source: Source = ""
    source_type: SourceType = "text/plain"
    source_key: SourceKey | None = None
    source_version: SourceVersion | None = None
    metadata: Metadata = {}
    attributes: Attributes = {}

    def to_input(self, collection_id: CollectionId, inline_bytes: int) -> IngestInput:
        """Makes the engine's input of the body.

        Args:
            collection_id: the collection of the request's path.
            inline_bytes: the largest content, in bytes.

        Raises:
            InvalidArgument: the body has neither or both contents, invalid base64, or text with another charset.
            PayloadTooLarge: the content has more than ``inline_bytes``.
        """
        content = self._content_bytes()
        if len(content) > inline_bytes:
            raise PayloadTooLarge(
                f"Content in a request is at most {inline_bytes} bytes; larger content goes through an upload",
                limit=inline_bytes,
                uploads=f"/v1/collections/{collection_id}/uploads",
            )
        # Only members that were sent: an ingest of unchanged content then keeps the document's title and the like.
        sent: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set - _CONTENTS}
        return IngestInput(collection_id=collection_id, content=content, **sent)

    def _content_bytes(self) -> bytes:
        if self.content is not None and self.content_base64 is None:
            self._validate_charset()
            return self.content.encode()
        if self.content is None and self.content_base64 is not None:
            try:
                return base64.b64decode(self.content_base64, validate=True)
            except ValueError as error:
                raise InvalidArgument("content_base64 is not valid base64", field="content_base64") from error
        raise InvalidArgument("Give either content or content_base64", field="content")

    def _validate_charset(self) -> None:
        """Refuses another charset than UTF-8 for content in JSON, which is Unicode already."""
        header = Message()
        header["content-type"] = self.source_type
        if header.get_content_charset("utf-8") not in {"utf-8", "utf8", "us-ascii"}:
            raise InvalidArgument(
                "content is sent as Unicode; send bytes in another charset as content_base64",
                field="source_type",
            )


def _document_or_error(value: Any, check: Callable[[Any], DocumentBody]) -> DocumentBody | WeftError:
    """Keeps the refusal of one document of a batch as that document's answer."""
    try:
        return check(value)
    except ValidationError as error:
        return invalid_input(error.errors(include_input=False, include_context=False, include_url=False))
    except WeftError as error:
        return error


if TYPE_CHECKING:
    BatchDocument = DocumentBody | WeftError
else:
    BatchDocument = Annotated[DocumentBody, WrapValidator(_document_or_error)]


class BatchBody(Model):
    """Documents to ingest in one call, at most 100. A document that is refused stops no other document."""

    model_config = with_example({"documents": [_EXAMPLE_BODY, {"content": ""}]})

    documents: list[BatchDocument] = Field(min_length=1, max_length=100)


class BatchSuccess(Model):
    """The result of one document of a batch."""

    result: IngestResult


class BatchFailure(Model):
    """The error of one document of a batch."""

    error: Problem


class BatchAnswer(Model):
    """The results of a batch: one for each document, in order."""

    model_config = with_example({"results": [{"result": EXAMPLE_RESULT}, {"error": EXAMPLE_PROBLEM}]})

    results: list[BatchSuccess | BatchFailure]


_EXAMPLE_QUESTION: dict[str, Any] = {
    "query": "What holds the warp threads?",
    "collections": [EXAMPLE_COLLECTION_ID],
    "top_k": 5,
    "min_score": 0.02,
    "strategy": "hybrid",
    "options": EXAMPLE_OPTIONS,
    "filter": {"year": {"gte": 2020}, "lang": {"in": ["en", "de"]}},
}
_EXAMPLE_ASSEMBLY: dict[str, Any] = {"max_tokens": 2000, "token_counter": "chars/4", "expand": 1}


class QuestionBody(Model):
    """A question to retrieve chunks by."""

    model_config = with_example(_EXAMPLE_QUESTION)

    query: str = Field(min_length=1, max_length=8192, description="The question in words")
    collections: list[CollectionId] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_QUERY_COLLECTIONS,
        description="The collections to search; absent: all of the tenant's",
    )
    top_k: StrictInt = Field(default=10, ge=1, le=100, description="The most hits of the answer")
    min_score: StrictFloat | None = Field(
        default=None,
        allow_inf_nan=False,
        description="The lowest score of a hit; absent: no bound",
    )
    strategy: Strategy | None = Field(
        default=None, description="The ranking; absent: the collections' own where they agree, otherwise similarity"
    )
    options: RetrieveOptions = RetrieveOptions()
    filter: dict[str, Any] | None = Field(default=None, description=_FILTER_DESCRIPTION)

    def to_query(self) -> RetrieveQuery:
        """Makes the engine's question of the body."""
        return RetrieveQuery(
            query=self.query,
            collections=self.collections,
            top_k=self.top_k,
            min_score=self.min_score,
            strategy=self.strategy,
            options=self.options,
            filter=self.filter,
        )


class RetrieveBody(QuestionBody):
    """A question to retrieve chunks by, and how to build a context of the hits."""

    model_config = with_example({**_EXAMPLE_QUESTION, "assemble": _EXAMPLE_ASSEMBLY})

    assemble: AssembleOptions | None = Field(
        default=None, description="How to build a context of the hits; absent: the answer has no context"
    )


class AssembleBody(AssembleOptions):
    """Chunks to build a cited context of, in this order. A chunk that is named twice is in the context once.

    Attributes:
        refs: The chunks, as an earlier answer named them.
    """

    model_config = with_example({"refs": [{"chunk_id": EXAMPLE_CHUNK_ID}], **_EXAMPLE_ASSEMBLY})

    refs: list[ChunkRef] = Field(min_length=1, max_length=100)
