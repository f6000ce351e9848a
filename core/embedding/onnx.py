"""An embedder that runs a sentence transformer, exported to ONNX, in this process."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Encoding

from core.embedding.models import PACKAGED_DIMENSIONS
from core.embedding.types import Embeddings, describe_embedder
from core.inference.files import OnnxModel
from core.inference.onnx import OnnxGraph, read_tokenizer
from core.inference.validation import validate_texts
from core.model.component import Component
from core.model.errors import ConfigurationError
from core.model.vector import Vector, VectorSpace, unit_vector
from core.splitting.counting import TokenCounter

TOKEN_VECTORS_RANK = 3
"""The vectors of tokens have three axes: texts, tokens and dimensions."""


class TokenizerCounter:
    """Counts tokens with a model's own tokenizer.

    Attributes:
        tokenizer: the tokenizer, for a splitter that can use it directly. It neither truncates nor pads.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.tokenizer = read_tokenizer(name, path)

    def count(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False))


class OnnxEmbedder:
    """Embeds a text as the mean of its tokens' vectors, brought to unit length. Thread-safe.

    Each text runs alone. A batch would save a tenth of the time on texts of a chunk's size. But it would need several
    times the memory, and it would change the vectors of models that quantize their activations by the range of values
    in the batch.

    The weights of the packaged model are read at the first use. A folder's model is run once at the start, because its
    number of dimensions has to be found out.
    """

    def __init__(self, model: OnnxModel) -> None:
        """
        Raises:
            ConfigurationError: the files are not those of a model that this class can run. Name another folder.
        """
        counter = TokenizerCounter(model.name, model.tokenizer)
        self.counter: TokenCounter = counter
        self._tokenizer = counter.tokenizer
        self._special_tokens: int = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self.max_tokens = model.longest_input - self._special_tokens
        if self.max_tokens < 1:
            raise ConfigurationError(f"The embedding model {model.name} takes no text: its longest input is too short")
        self._token_vectors = OnnxGraph(
            model,
            rank=TOKEN_VECTORS_RANK,
            mismatch=f"The embedding model {model.name} is not a sentence transformer that can be run here: it has to "
            "answer with a vector for each token",
        )
        self.space = VectorSpace(
            model=model.name, dimensions=PACKAGED_DIMENSIONS if model.is_packaged else self._measure_dimensions()
        )

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Embeds texts, as `core.embedding.types.Embedder` says."""
        encodings = self._tokenizer.encode_batch(texts)
        validate_texts(texts, [len(encoding) - self._special_tokens for encoding in encodings], self.max_tokens)
        return Embeddings([self._vector(encoding) for encoding in encodings], sum(map(len, encodings)))

    def describe(self) -> Component:
        return describe_embedder(self, "onnx")

    def _vector(self, encoding: Encoding) -> Vector:
        # There is no padding, so that the mean over the attention mask is the mean over all tokens.
        return unit_vector(self._token_vectors.run(encoding).mean(axis=0, dtype=np.float64).tolist())

    def _measure_dimensions(self) -> int:
        # The graph of an exported model need not declare them.
        return len(self._vector(self._tokenizer.encode("probe")))
