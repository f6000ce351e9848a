"""Checks of what a model is to read. Every embedder and every reranker makes them before it runs its model."""

from collections.abc import Sequence

from core.model.errors import InvalidArgument


def validate_texts(texts: Sequence[str], tokens: Sequence[int], max_tokens: int) -> None:
    """Refuses texts of which one cannot be embedded whole.

    Args:
        texts: the texts of one call.
        tokens: the length of each text, in tokens.
        max_tokens: the length of the longest text that the model takes, in tokens.

    Raises:
        InvalidArgument: a text is blank or too long. The message tells the text's place and length, and none of its
            words.
    """
    for place, (text, length) in enumerate(zip(texts, tokens, strict=True), start=1):
        if not text.strip():
            raise InvalidArgument(f"Text {place} of {len(texts)} is blank; there is nothing to embed")
        if length > max_tokens:
            raise InvalidArgument(
                f"Text {place} of {len(texts)} has {length} tokens; the embedding model takes at most {max_tokens}",
                limit=max_tokens,
            )


def validate_query(query: str) -> None:
    """Refuses a query to which no text can be relevant.

    Raises:
        InvalidArgument: the query is blank.
    """
    if not query.strip():
        raise InvalidArgument("The query is blank; nothing is relevant to it", field="query")
