"""Contents for tests and proofs, of which every chunk says which content it is of."""


def text(tag: str, chunks: int = 2) -> str:
    """A content of that many chunks, in a collection of very small chunks. The first word of each chunk is the tag."""
    return "\n\n".join(f"{tag} part{number} of text" for number in range(chunks))


def tag_of(chunk_text: str) -> str:
    """The tag of the content that a chunk is of."""
    return chunk_text.split(maxsplit=1)[0]
