"""The embedders of an engine, found by the name of their model."""

from collections.abc import Sequence

from core.embedding.types import Embedder
from core.model.errors import NotConfigured
from core.model.vector import Vector, VectorSpace
from core.observe import Observer
from core.splitting.counting import TokenCounter


class Embedders:
    """Finds the embedder for a collection, and records how long every call of an embedder takes.

    Args:
        embedders: the embedders, of which the first is the default for a new collection. Without any, nothing can be
            embedded.
    """

    def __init__(self, embedders: Sequence[Embedder], observer: Observer) -> None:
        self._by_model = {embedder.space.model: embedder for embedder in embedders}
        self._observer = observer

    @property
    def models(self) -> list[str]:
        """The names of the models; the default model comes first."""
        return list(self._by_model)

    @property
    def counters(self) -> list[TokenCounter]:
        """The token counters of the models, in the order of `models`."""
        return [embedder.counter for embedder in self._by_model.values()]

    def default(self) -> Embedder | None:
        """Returns the embedder for a new collection that names no model; None when no embedder is configured."""
        return next(iter(self._by_model.values()), None)

    def require_any(self) -> None:
        """Refuses to go on without an embedder.

        Raises:
            NotConfigured: no embedder is configured. Set WEFT_EMBEDDER.
        """
        if not self._by_model:
            raise NotConfigured("No embedder is configured")

    def of_model(self, model: str) -> Embedder:
        """Returns the embedder of a model.

        Raises:
            NotConfigured: no embedder for that model is configured.
        """
        try:
            return self._by_model[model]
        except KeyError as error:
            raise NotConfigured(f"No embedder for the model {model!r} is configured") from error

    def of_space(self, space: VectorSpace) -> Embedder:
        """Returns the embedder whose vectors belong to a vector space.

        Raises:
            NotConfigured: no embedder for that model is configured, or it is configured with another number of
                dimensions.
        """
        embedder = self.of_model(space.model)
        if embedder.space.dimensions != space.dimensions:
            raise NotConfigured(
                f"The embedder {space.model!r} has {embedder.space.dimensions} dimensions, and the collection "
                f"{space.dimensions}: configure that many, or ingest into a new collection"
            )
        return embedder

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        """Embeds texts with an embedder, and records the call's duration and its number of input tokens.

        The names of the metrics are those of OpenTelemetry's semantic conventions for generative AI clients.

        Returns:
            One vector for each text, in the order of the texts.

        Raises:
            InvalidArgument, NotConfigured, Unavailable: as `core.embedding.types.Embedder` says.
        """
        model = embedder.space.model
        with self._observer.model_call(model):
            embeddings = embedder.embed(texts)
        self._observer.record("gen_ai.client.token.usage", embeddings.input_tokens, "Count", model=model)
        return embeddings.vectors
