"""ONNX graphs and their tokenizers, as the models of this process use them."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding, Tokenizer

from core.model.errors import ConfigurationError

INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""The inputs that a model may declare, and where an encoding holds them."""


def read_tokenizer(model: str, path: Path) -> Tokenizer:
    """A tokenizer that neither cuts nor pads, whatever its file says.

    Args:
        model: the model's name.
        path: of a ``tokenizer.json``.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ConfigurationError(f"The tokenizer of the model {model} cannot be read") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class Graph:
    """Weights in memory. Thread-safe.

    Attributes:
        outputs: the rank of each output, by its name.
    """

    def __init__(self, model: str, weights: Path) -> None:
        """
        Raises:
            ConfigurationError: the weights cannot be read, or ask for more than an encoding holds.
        """
        import onnxruntime  # noqa: PLC0415 - slow to import, and not needed until a model is run

        try:
            self._session: Any = onnxruntime.InferenceSession(weights, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library's errors share no narrower base
            raise ConfigurationError(f"The weights of the model {model} cannot be read") from error
        self._inputs = [item.name for item in self._session.get_inputs()]
        self.outputs = {item.name: len(item.shape) for item in self._session.get_outputs()}
        unknown = sorted(set(self._inputs) - INPUTS.keys())
        if unknown:
            raise ConfigurationError(
                f"The model {model} cannot be run here: its inputs may be {', '.join(INPUTS)}; "
                f"it asks for {', '.join(unknown)}"
            )

    def run(self, output: str, encoding: Encoding) -> npt.NDArray[np.float32]:
        """One output for one input, which runs alone: there is no padding, and nothing beside it to depend on."""
        feed = {name: np.array([getattr(encoding, INPUTS[name])], dtype=np.int64) for name in self._inputs}
        [values] = self._session.run([output], feed)
        answer: npt.NDArray[np.float32] = values[0]
        return answer
