"""Any sentence transformer that is exported to ONNX, run in this process."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Encoding

from core.embedding.checks import check_texts, unit
from core.embedding.types import Embeddings
from core.inference.onnx import Graph, read_tokenizer
from core.model.component import Component
from core.model.errors import ConfigurationError
from core.model.vector import Vector, VectorSpace
from core.splitting.counting import TokenCounter

TOKEN_VECTORS_RANK = 3
"""Token vectors come as texts by tokens by dimensions."""


@dataclass(frozen=True)
class OnnxModel:
    """A sentence transformer's files, and what is known of it before its weights are read.

    Attributes:
        name: as collections record it.
        weights: an ONNX graph from token numbers to a vector for each token.
        tokenizer: a ``tokenizer.json``.
        longest_input: tokens of the longest input, special tokens included.
        dimensions: of its vectors; None: read from the weights.
    """

    name: str
    weights: Path
    tokenizer: Path
    longest_input: int
    dimensions: int | None = None


class TokenizerCounter:
    """Counts as one model's tokenizer does.

    Attributes:
        tokenizer: the tokenizer itself, for a splitter that can work with it directly. It neither cuts nor pads.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.tokenizer = read_tokenizer(name, path)

    def count(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False))


class OnnxEmbedder:
    """Mean of the token vectors, at unit length.

    Each text runs alone. A batch would save a tenth of the time on texts of chunk size, needs several times the
    memory, and changes the vectors of models whose activations are quantized by the batch's range.

    The weights are read at the first use, unless the dimensions have to be read from them. Thread-safe.
    """

    def __init__(self, model: OnnxModel) -> None:
        """
        Raises:
            ConfigurationError: the files are not those of a model that this class can run.
        """
        self._model = model
        self._lock = threading.Lock()
        self._graph: _TokenVectors | None = None
        counter = TokenizerCounter(model.name, model.tokenizer)
        self.counter: TokenCounter = counter
        self._tokenizer = counter.tokenizer
        self._special_tokens: int = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self.max_tokens = model.longest_input - self._special_tokens
        if self.max_tokens < 1:
            raise ConfigurationError(f"The embedding model {model.name} takes no text: its longest input is too short")
        self.space = VectorSpace(model=model.name, dimensions=model.dimensions or self._probe())

    def embed(self, texts: Sequence[str]) -> Embeddings:
        encodings = self._tokenizer.encode_batch(texts)
        check_texts(texts, [len(encoding) - self._special_tokens for encoding in encodings], self.max_tokens)
        graph = self._loaded()
        return Embeddings([graph.vector(encoding) for encoding in encodings], sum(map(len, encodings)))

    def describe(self) -> Component:
        return Component(
            name=self.space.model,
            type="onnx",
            configured=True,
            dimensions=self.space.dimensions,
            max_tokens=self.max_tokens,
        )

    def _loaded(self) -> "_TokenVectors":
        with self._lock:
            if self._graph is None:
                self._graph = _TokenVectors(self._model)
            return self._graph

    def _probe(self) -> int:
        """The length of one vector: an exported graph need not declare it."""
        return len(self._loaded().vector(self._tokenizer.encode("probe")))


class _TokenVectors:
    """The graph of a sentence transformer."""

    def __init__(self, model: OnnxModel) -> None:
        self._graph = Graph(model.name, model.weights)
        outputs = [name for name, rank in self._graph.outputs.items() if rank == TOKEN_VECTORS_RANK]
        if not outputs:
            raise ConfigurationError(
                f"The embedding model {model.name} is not a sentence transformer that can be run here: it has to "
                "answer with a vector for each token"
            )
        self._output = outputs[0]

    def vector(self, encoding: Encoding) -> Vector:
        """The vector of one text. Without padding, the mean over the mask is the mean over all tokens."""
        token_vectors = self._graph.run(self._output, encoding)
        return unit(token_vectors.mean(axis=0, dtype=np.float64).tolist())
