"""Folders with tiny ONNX models and a tokenizer, for tests of models that users bring along."""

from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import TensorProto, helper
from tokenizers import Tokenizer, models, pre_tokenizers

OPSET = 11
"""The last version of the operators in which `axes` is an attribute of a node, and not a further input."""
IR_VERSION = 8


def tiny_model(folder: Path, inputs: Sequence[str] = ("input_ids", "attention_mask"), rank: int = 3) -> Path:
    """Writes a sentence transformer with two dimensions to a folder, and returns the folder.

    The vector of a token is (the token's number, 1). The vector of a text is therefore (the mean of the numbers, 1),
    brought to unit length. The tokenizer numbers the words ``one``, ``two`` and ``three``. Its file asks for
    truncation to 2 tokens and for padding to 5.

    Args:
        inputs: the inputs that the graph declares. It computes with the first two.
        rank: the rank of the graph's output: 3 for the vectors of the tokens, 2 for a graph that has none.
    """
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["attention_mask"], ["ones"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["numbers"], ["first"], axes=[2]),
        helper.make_node("Unsqueeze", ["ones"], ["second"], axes=[2]),
        helper.make_node("Concat", ["first", "second"], ["both"], axis=2),
    ]
    return _write(folder, nodes, inputs, "both" if rank == 3 else "numbers", rank)


def tiny_cross_encoder(folder: Path, classes: int = 1) -> Path:
    """Writes a cross-encoder to a folder, and returns the folder.

    The logit of a pair is the sum of its token numbers. The tokenizer is the one of `tiny_model`.

    Args:
        classes: how many logits the graph answers with for a pair; a usable cross-encoder has 1.
    """
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["numbers"], ["sum"], axes=[1]),
        helper.make_node("Concat", ["sum"] * classes, ["logits"], axis=1),
    ]
    return _write(folder, nodes, ["input_ids"], "logits", rank=2)


def _write(folder: Path, nodes: Sequence[onnx.NodeProto], inputs: Sequence[str], output: str, rank: int) -> Path:
    folder.mkdir(exist_ok=True)
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [f"axis {axis}" for axis in range(rank)])],
    )
    model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
    onnx.save(model, folder / "model.onnx")
    tokenizer = Tokenizer(models.WordLevel({"?": 0, "one": 1, "two": 2, "three": 3}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=5)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
