"""ONNX graphs and their tokenizers: what the models that run in this process have in common."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding, Tokenizer

from core.inference.files import OnnxModel
from core.model.errors import ConfigurationError

INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""The inputs that a graph may declare, each with the attribute of a tokenizer's encoding that holds its values."""


def read_tokenizer(model: str, path: Path) -> Tokenizer:
    """Reads a tokenizer and turns off its truncation and padding, which its file may ask for.

    Args:
        model: the model's name.
        path: the path of a ``tokenizer.json``.

    Raises:
        ConfigurationError: the file cannot be read. Replace it by a file that the library tokenizers wrote.
    """
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ConfigurationError(f"The tokenizer of the model {model} cannot be read") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class OnnxGraph:
    """One output of a model's ONNX graph. The weights are read at the first use. Thread-safe.

    Args:
        model: the model.
        rank: how many axes the output has. The first output with this rank is the one that `run` returns.
        mismatch: the message of the error for a graph that has no such output.
    """

    def __init__(self, model: OnnxModel, *, rank: int, mismatch: str) -> None:
        self._model = model
        self._rank = rank
        self._mismatch = mismatch
        self._lock = threading.Lock()
        self._session: Any = None
        self._inputs: list[str] = []
        self._output = ""

    def load(self) -> None:
        """Reads the weights, unless that has been done.

        Raises:
            ConfigurationError: the model cannot be run here. Name a folder with another model.
        """
        with self._lock:
            if self._session is None:
                self._read()

    def run(self, encoding: Encoding) -> npt.NDArray[np.float32]:
        """Runs the graph on one input and returns the output for this input, without the axis of the batch.

        The input runs alone: a batch would pad it, and the output could depend on the other inputs of the batch.

        Raises:
            ConfigurationError: the model cannot be run here. Name a folder with another model.
        """
        self.load()
        feed = {name: np.array([getattr(encoding, INPUTS[name])], dtype=np.int64) for name in self._inputs}
        [outputs] = self._session.run([self._output], feed)
        output: npt.NDArray[np.float32] = outputs[0]
        return output

    def _read(self) -> None:
        import onnxruntime  # noqa: PLC0415 - slow to import, and not needed until a model is run

        name = self._model.name
        try:
            session = onnxruntime.InferenceSession(self._model.weights, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library's errors share no narrower base
            raise ConfigurationError(f"The weights of the model {name} cannot be read") from error
        self._inputs = [declared.name for declared in session.get_inputs()]
        unknown = sorted(set(self._inputs) - INPUTS.keys())
        if unknown:
            raise ConfigurationError(
                f"The model {name} cannot be run here: its inputs may be {', '.join(INPUTS)}; "
                f"it asks for {', '.join(unknown)}"
            )
        outputs = [declared.name for declared in session.get_outputs() if len(declared.shape) == self._rank]
        if not outputs:
            raise ConfigurationError(self._mismatch)
        self._output = outputs[0]
        self._session = session
