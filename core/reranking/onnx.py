"""A reranker that runs a cross-encoder, exported to ONNX, in this process."""

import math
from collections.abc import Sequence

from core.clock import Clock
from core.inference.files import OnnxModel
from core.inference.onnx import OnnxGraph, read_tokenizer
from core.inference.validation import validate_query
from core.model.component import Component
from core.model.errors import ConfigurationError, NotConfigured, Unavailable
from core.reranking.types import end_of_call

MAX_TOKENS = 256
"""How many tokens of a query and a text together are read, even by a model that takes more: the time grows with the
tokens, and the beginning of a chunk mostly tells whether the chunk is relevant."""

LOGITS_RANK = 2
"""Logits have two axes: pairs and classes."""


class OnnxReranker:
    """Scores a text by the logistic function of the logit that a cross-encoder has for the query and the text.

    Thread-safe.

    A query and a text together have at most `MAX_TOKENS` tokens, special tokens included, or fewer where the model
    takes fewer. A longer pair is truncated: its longer side loses tokens at the end until the pair fits. As long as the
    query is short, the text alone is truncated.

    Each pair runs alone: in a batch, a model that quantizes its activations would score a pair by the range of values
    of all pairs. The clock is read before each pair, so that a call ends at most one pair after its time.

    The weights of the packaged model are read at the first use. A folder's model is run once at the start, to find out
    whether it is a cross-encoder.
    """

    def __init__(self, model: OnnxModel, clock: Clock, *, seconds: float) -> None:
        """
        Args:
            seconds: how long a call may take.

        Raises:
            ConfigurationError: the files are not those of a model that this class can run. Name another folder.
        """
        self.name = model.name
        self.max_tokens = min(MAX_TOKENS, model.longest_input)
        self._clock = clock
        self._seconds = seconds
        self._tokenizer = read_tokenizer(model.name, model.tokenizer)
        if self.max_tokens < self._tokenizer.num_special_tokens_to_add(is_pair=True) + 2:
            raise ConfigurationError(f"The reranker {model.name} takes no text: its longest input is too short")
        self._tokenizer.enable_truncation(self.max_tokens, strategy="longest_first")
        self._mismatch = (
            f"The reranker {model.name} is not a cross-encoder that can be run here: it has to answer with one number "
            "for each pair"
        )
        self._logits = OnnxGraph(model, rank=LOGITS_RANK, mismatch=self._mismatch)
        if not model.is_packaged:
            self._logit("probe", "probe")

    def rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float]:
        """Scores texts, as `core.reranking.types.Reranker` says."""
        validate_query(query)
        end = end_of_call(self._clock, self._seconds, deadline)
        try:
            return [self._relevance(query, text, end) if text.strip() else 0.0 for text in texts]
        except ConfigurationError as error:
            raise NotConfigured(str(error)) from error

    def describe(self) -> Component:
        return Component(name=self.name, type="onnx", configured=True, max_tokens=self.max_tokens)

    def _relevance(self, query: str, text: str, end: float) -> float:
        # Reading the weights takes long, and must not delay the call further once its time is over.
        self._logits.load()
        if self._clock.monotonic() >= end:
            raise Unavailable(f"The reranker {self.name} is too slow for so many texts, or for its time limit")
        return logistic(self._logit(query, text))

    def _logit(self, query: str, text: str) -> float:
        logits = self._logits.run(self._tokenizer.encode(query, text))
        if logits.size != 1 or not math.isfinite(logits[0]):
            raise ConfigurationError(self._mismatch)
        return float(logits[0])


def logistic(logit: float) -> float:
    """Returns 1 / (1 + e^−x), a number from 0 to 1, for every finite x without an overflow."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    power = math.exp(logit)
    return power / (1 + power)
