"""The embedders of an engine, by the name that a collection records."""

from collections.abc import Sequence

from core.embedding.types import Embedder
from core.model.errors import NotConfigured
from core.model.vector import Vector, VectorSpace
from core.observe import Observer
from core.splitting.counting import TokenCounter


class Embedders:
    """Finds the embedder of a collection, and measures every call to one.

    Args:
        embedders: the first is the default of a new collection; none: nothing can be embedded.
    """

    def __init__(self, embedders: Sequence[Embedder], observer: Observer) -> None:
        self._by_model = {embedder.space.model: embedder for embedder in embedders}
        self._observer = observer

    @property
    def models(self) -> list[str]:
        """The names of the models, the default first."""
        return list(self._by_model)

    @property
    def counters(self) -> list[TokenCounter]:
        """The token counter of each model."""
        return [embedder.counter for embedder in self._by_model.values()]

    def default(self) -> Embedder | None:
        """Returns the embedder of a new collection that names no model; None when no embedder is configured."""
        return next(iter(self._by_model.values()), None)

    def require_any(self) -> None:
        """Raises NotConfigured when no embedder is configured."""
        if not self._by_model:
            raise NotConfigured("No embedder is configured")

    def of_model(self, model: str) -> Embedder:
        """Returns the embedder of a model.

        Raises:
            NotConfigured: no embedder of that name is configured.
        """
        try:
            return self._by_model[model]
        except KeyError as error:
            raise NotConfigured(f"No embedder for the model {model!r} is configured") from error

    def of_space(self, space: VectorSpace) -> Embedder:
        """Returns the embedder whose vectors belong to a vector space.

        Raises:
            NotConfigured: no embedder of that model is configured, or its number of dimensions has changed.
        """
        embedder = self.of_model(space.model)
        if embedder.space.dimensions != space.dimensions:
            raise NotConfigured(
                f"The embedder {space.model!r} has {embedder.space.dimensions} dimensions, and the collection "
                f"{space.dimensions}: configure that many, or ingest into a new collection"
            )
        return embedder

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        """Embeds texts, one vector a text, and records the call's duration and its input tokens.

        The metrics' names are OpenTelemetry's, from its semantic conventions for generative AI clients.

        Raises:
            InvalidArgument: the model cannot take a text.
            NotConfigured, Unavailable: the model refuses or does not answer.
        """
        model = embedder.space.model
        with self._observer.model_call(model):
            embeddings = embedder.embed(texts)
        self._observer.record("gen_ai.client.token.usage", embeddings.input_tokens, "Count", model=model)
        return embeddings.vectors
