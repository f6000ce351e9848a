"""The registry of splitters: which splitter each chunk strategy stands for.

To add a splitter, write it in a module of its own in this room and add it to ``SPLITTERS``. The chunk strategies that
collections may choose, the text of the refusal and the description of the engine all come from the splitters' names.
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
    """Finds the splitter of a chunk strategy."""

    def __init__(self) -> None:
        self._by_name = {splitter.name: splitter for splitter in SPLITTERS}

    def find(self, name: str) -> Splitter:
        """Returns the splitter that a chunk strategy names.

        Raises:
            InvalidArgument: no splitter has this name. The message lists the names that splitters have.
        """
        splitter = self._by_name.get(name)
        if splitter is None:
            raise InvalidArgument(
                f"No such chunk strategy; there are {', '.join(self._by_name)}", field="chunk_strategy"
            )
        return splitter

    def describe(self) -> Component:
        """Describes the splitters for the engine's list of components."""
        return Component(name=", ".join(self._by_name), type="semantic-text-splitter", configured=True)
