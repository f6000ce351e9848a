"""Bodies, queries and answers where HTTP's form is not the engine's."""

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
    check_source_key,
)
from core.model.errors import InvalidArgument, PayloadTooLarge, WeftError
from core.model.ids import EXAMPLE_CHUNK_ID, EXAMPLE_COLLECTION_ID, CollectionId, DocumentId
from core.model.ingest import EXAMPLE_RESULT, IngestInput, IngestResult
from core.model.page import Order, Page, PageRequest
from core.model.query import EXAMPLE_OPTIONS, MAX_QUERY_COLLECTIONS, RetrieveOptions, RetrieveQuery, Strategy

T = TypeVar("T")

_CONTENTS = {"content", "content_base64"}

FILTER = (
    "What the attributes of chunks must be. A field takes a value, or operators: eq, ne, gt, gte, lt, lte with one "
    "value, in and nin with a list, exists with true or false. Fields side by side, and operators side by side, must "
    "all hold. {and: [filter, …]}, {or: [filter, …]} and {not: filter} join filters; attributes of these names cannot "
    "be filtered by. Against a list, a comparison holds when it does for any element. A text that is an RFC 3339 "
    "date-time with its zone is a date. Values of two kinds are never equal."
)


def _check_key(key: str) -> str:
    try:
        return check_source_key(key)
    except InvalidArgument as error:
        raise PydanticCustomError("source_key", "{detail}", {"detail": error.detail}) from error


class PageQuery(Model):
    """What every listing takes."""

    limit: int = Field(default=20, ge=1, le=100)
    page_token: str | None = Field(default=None, max_length=4096)
    order: Order = Order.NEWEST
    include_total: bool = False

    def page(self) -> PageRequest:
        """The engine's form."""
        return PageRequest(limit=self.limit, token=self.page_token, order=self.order, total=self.include_total)


class CollectionsQuery(PageQuery):
    """A listing of collections."""

    name: str | None = Field(default=None, max_length=256, description="Exactly this name")
    name_contains: str | None = Field(default=None, max_length=256, description="Literal, in any case")


class DocumentsQuery(PageQuery):
    """A listing of documents."""

    collection_id: CollectionId | None = None
    state: DocumentState | None = None
    source_key: SourceKey | None = Field(default=None, description="A key or a source_id; needs collection_id")


class ChunksQuery(PageQuery):
    """A listing of chunks. One of the two is needed."""

    collection_id: CollectionId | None = None
    document_id: DocumentId | None = None


class SourceQuery(Model):
    """One source of a collection."""

    key: Annotated[str, AfterValidator(_check_key)] = Field(description="The source's key, or its source_id")


def _add_example_page(schema: dict[str, Any], page: type[Any]) -> None:
    """Gives a page's schema an example that holds the example of its items."""
    [item] = get_args(page.model_fields["items"].annotation)
    if isinstance(item, type) and issubclass(item, Model):
        extra: Any = item.model_config["json_schema_extra"]
        schema["example"] = {"items": [extra["example"]], "next_page_token": None}


class ListAnswer(Model, Generic[T]):
    """One page. ``total`` is there when it was asked for."""

    model_config = ConfigDict(json_schema_extra=_add_example_page)

    items: list[T]
    next_page_token: str | None = None
    total: int | None = Field(default=None, exclude_if=lambda total: total is None)

    @classmethod
    def of(cls, page: Page[T]) -> "ListAnswer[T]":
        """HTTP's form of a page."""
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
    """A document to ingest: text in ``content``, or bytes in ``content_base64``."""

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
        """The engine's form.

        Raises:
            InvalidArgument: neither or both contents, base64 that is none, or text with another charset.
            PayloadTooLarge: more than ``inline_bytes``.
        """
        content = self._decoded()
        if len(content) > inline_bytes:
            raise PayloadTooLarge(
                f"Content in a request is at most {inline_bytes} bytes; larger content goes through an upload",
                limit=inline_bytes,
                uploads=f"/v1/collections/{collection_id}/uploads",
            )
        # Only what was sent: what was not sent leaves an unchanged document's description alone.
        sent: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set - _CONTENTS}
        return IngestInput(collection_id=collection_id, content=content, **sent)

    def _decoded(self) -> bytes:
        if self.content is not None and self.content_base64 is None:
            self._check_charset()
            return self.content.encode()
        if self.content is None and self.content_base64 is not None:
            try:
                return base64.b64decode(self.content_base64, validate=True)
            except ValueError as error:
                raise InvalidArgument("content_base64 is not base64", field="content_base64") from error
        raise InvalidArgument("Give one of content and content_base64", field="content")

    def _check_charset(self) -> None:
        """Text in JSON is Unicode already: bytes in another charset are sent as bytes."""
        header = Message()
        header["content-type"] = self.source_type
        if header.get_content_charset("utf-8") not in {"utf-8", "utf8", "us-ascii"}:
            raise InvalidArgument(
                "content is sent as Unicode; send bytes in another charset as content_base64",
                field="source_type",
            )


def _item(value: Any, check: Callable[[Any], DocumentBody]) -> DocumentBody | WeftError:
    try:
        return check(value)
    except ValidationError as error:
        return invalid_input(error.errors(include_input=False, include_context=False, include_url=False))
    except WeftError as error:
        return error


if TYPE_CHECKING:
    BatchDocument = DocumentBody | WeftError
else:
    BatchDocument = Annotated[DocumentBody, WrapValidator(_item)]


class BatchBody(Model):
    """Documents that are ingested side by side. What is wrong with one is that one's answer."""

    model_config = with_example({"documents": [_EXAMPLE_BODY, {"content": ""}]})

    documents: list[BatchDocument] = Field(min_length=1, max_length=100)


class BatchSuccess(Model):
    """One document's outcome."""

    result: IngestResult


class BatchFailure(Model):
    """Why one document was not ingested."""

    error: Problem


class BatchAnswer(Model):
    """One answer a document, in order."""

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
    """A question."""

    model_config = with_example(_EXAMPLE_QUESTION)

    query: str = Field(min_length=1, max_length=8192)
    collections: list[CollectionId] | None = Field(
        default=None, min_length=1, max_length=MAX_QUERY_COLLECTIONS, description="Absent: all of the tenant's"
    )
    top_k: StrictInt = Field(default=10, ge=1, le=100)
    min_score: StrictFloat | None = Field(default=None, allow_inf_nan=False)
    strategy: Strategy | None = Field(
        default=None, description="Absent: the collections' own where they agree, else similarity"
    )
    options: RetrieveOptions = RetrieveOptions()
    filter: dict[str, Any] | None = Field(default=None, description=FILTER)

    def to_query(self) -> RetrieveQuery:
        """The engine's form."""
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
    """A question, and how a context is made of its hits."""

    model_config = with_example({**_EXAMPLE_QUESTION, "assemble": _EXAMPLE_ASSEMBLY})

    assemble: AssembleOptions | None = Field(default=None, description="Absent: no context is made")


class AssembleBody(AssembleOptions):
    """Chunks to make a cited context of, in this order. One that is named again stands in the context once."""

    model_config = with_example({"refs": [{"chunk_id": EXAMPLE_CHUNK_ID}], **_EXAMPLE_ASSEMBLY})

    refs: list[ChunkRef] = Field(min_length=1, max_length=100)
