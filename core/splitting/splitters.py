"""The registry of splitters: which splitter each chunk strategy stands for.

To add a splitter, write it in a module of its own in this room and add it to ``SPLITTERS``. Its name is the chunk
strategy by which collections choose it.
"""

from semantic_text_splitter import MarkdownSplitter, TextSplitter

from core.model.component import Component
from core.model.errors import InvalidArgument
from core.splitting.semantic import SemanticSplitter
from core.splitting.types import Splitter

SPLITTERS: tuple[Splitter, ...] = (
    SemanticSplitter("recursive", TextSplitter),
    SemanticSplitter("markdown", MarkdownSplitter),
)


class Splitters:
    """The splitters by name."""

    def __init__(self) -> None:
        self._by_name = {splitter.name: splitter for splitter in SPLITTERS}

    @property
    def names(self) -> list[str]:
        return list(self._by_name)

    def find(self, name: str) -> Splitter:
        """The splitter of a chunk strategy's name.

        Raises:
            InvalidArgument: there is none; the message names those there are.
        """
        splitter = self._by_name.get(name)
        if splitter is None:
            raise InvalidArgument(
                f"No such chunk strategy; there are {', '.join(self._by_name)}", field="chunk_strategy"
            )
        return splitter

    def describe(self) -> Component:
        return Component(name=", ".join(self._by_name), type="semantic-text-splitter", configured=True)
