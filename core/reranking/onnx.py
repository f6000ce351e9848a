"""Any cross-encoder that is exported to ONNX, run in this process."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Encoding

from core.clock import Clock
from core.inference.onnx import Graph, read_tokenizer
from core.model.component import Component
from core.model.errors import ConfigurationError, NotConfigured, Unavailable
from core.reranking.checks import check_query, end_of

MAX_TOKENS = 256
"""Of a pair, whatever more the model takes: time grows with it, and the beginning of a chunk mostly tells."""

LOGITS_RANK = 2
"""Logits come as pairs by classes."""


@dataclass(frozen=True)
class CrossEncoderModel:
    """A cross-encoder's files, and what is known of it before its weights are read.

    Attributes:
        name: as it describes itself.
        weights: an ONNX graph from the token numbers of a pair to one logit.
        tokenizer: a ``tokenizer.json``.
        longest_input: tokens of the longest pair, special tokens included.
        known: whether it is the model that this release was tested with.
    """

    name: str
    weights: Path
    tokenizer: Path
    longest_input: int
    known: bool = False


class OnnxReranker:
    """The logistic function of the model's logit for each pair of query and text.

    A pair has 256 tokens at most, special tokens included, or as many as the model takes where that is less. Of a
    longer one the longer side is cut at its end until both fit: the text, as long as the query is short.

    Each pair runs alone: in a batch, weights with quantized activations would answer by the range of all pairs.
    Time is looked at before each pair, so that a call ends one pair after its time at the latest.

    Weights are read at the first use; those that are not known, at the start. Thread-safe.
    """

    def __init__(self, model: CrossEncoderModel, clock: Clock, *, seconds: float) -> None:
        """
        Args:
            seconds: how long a call may take.

        Raises:
            ConfigurationError: the files are not those of a model that this class can run.
        """
        self.name = model.name
        self.max_tokens = min(MAX_TOKENS, model.longest_input)
        self._model = model
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()
        self._graph: _Logit | None = None
        self._tokenizer = read_tokenizer(model.name, model.tokenizer)
        if self.max_tokens < self._tokenizer.num_special_tokens_to_add(is_pair=True) + 2:
            raise ConfigurationError(f"The reranker {model.name} takes no text: its longest input is too short")
        self._tokenizer.enable_truncation(self.max_tokens, strategy="longest_first")
        if not model.known:
            self._loaded().of(self._tokenizer.encode("probe", "probe"))

    def rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float]:
        """As the protocol says."""
        check_query(query)
        end = end_of(self._clock, self._seconds, deadline)
        try:
            return [self._relevance(query, text, end) if text.strip() else 0.0 for text in texts]
        except ConfigurationError as error:
            raise NotConfigured(str(error)) from error

    def describe(self) -> Component:
        return Component(name=self.name, type="onnx", configured=True, max_tokens=self.max_tokens)

    def _relevance(self, query: str, text: str, end: float) -> float:
        graph = self._loaded()
        if self._clock.monotonic() >= end:
            raise Unavailable(f"The reranker {self.name} is too slow for so many texts, or for its time limit")
        return logistic(graph.of(self._tokenizer.encode(query, text)))

    def _loaded(self) -> "_Logit":
        with self._lock:
            if self._graph is None:
                self._graph = _Logit(self._model)
            return self._graph


class _Logit:
    """The graph of a cross-encoder."""

    def __init__(self, model: CrossEncoderModel) -> None:
        self._name = model.name
        self._graph = Graph(model.name, model.weights)
        outputs = [name for name, rank in self._graph.outputs.items() if rank == LOGITS_RANK]
        if not outputs:
            raise self._not_one()
        self._output = outputs[0]

    def of(self, encoding: Encoding) -> float:
        """The logit of one pair.

        Raises:
            ConfigurationError: there is none, or there are several.
        """
        logits = self._graph.run(self._output, encoding)
        if logits.size != 1 or not math.isfinite(logits[0]):
            raise self._not_one()
        return float(logits[0])

    def _not_one(self) -> ConfigurationError:
        return ConfigurationError(
            f"The reranker {self._name} is not a cross-encoder that can be run here: it has to answer with one number "
            "for each pair"
        )


def logistic(logit: float) -> float:
    """1 / (1 + e^−x), between 0 and 1, for every number without overflow."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    power = math.exp(logit)
    return power / (1 + power)
