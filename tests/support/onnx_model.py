"""Tiny ONNX graphs and tokenizers, so that a folder of one's own can be tested in every shape.

The graph is written in protobuf's own encoding (https://protobuf.dev/programming-guides/encoding/) with the field
numbers of onnx.proto: a library that only writes test data is not worth installing.
"""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers

FLOAT, INT64 = 1, 7
ATTRIBUTE_INT, ATTRIBUTE_INTS = 2, 7


def tiny_model(folder: Path, inputs: Sequence[str] = ("input_ids", "attention_mask"), rank: int = 3) -> Path:
    """A model in ``folder``. Its token vectors are (token's number, 1): the vector of a text is the mean number and 1,
    at unit length. The tokenizer numbers ``one``, ``two`` and ``three``, and wants to cut at 2 tokens and to pad to 5.

    Args:
        inputs: what the graph declares. The first two are used.
        rank: 3 for vectors of tokens; 2 for a graph that answers with something else.
    """
    return _write(folder, _sentence_transformer(inputs, rank))


def tiny_cross_encoder(folder: Path, classes: int = 1) -> Path:
    """A model in ``folder``. Its logit is the sum of the token numbers of a pair; the tokenizer is ``tiny_model``'s.

    Args:
        classes: how many numbers it answers with.
    """
    nodes = [
        _node("Cast", ["input_ids"], "numbers", _attribute("to", FLOAT)),
        _node("ReduceSum", ["numbers"], "sum", _attribute("axes", [1])),
        _node("Concat", ["sum"] * classes, "logits", _attribute("axis", 1)),
    ]
    return _write(folder, _graph(nodes, ["input_ids"], _tensor("logits", FLOAT, 2)))


def _write(folder: Path, graph: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(graph)
    tokenizer = Tokenizer(models.WordLevel({"?": 0, "one": 1, "two": 2, "three": 3}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=5)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def _sentence_transformer(inputs: Sequence[str], rank: int) -> bytes:
    nodes = [
        _node("Cast", ["input_ids"], "numbers", _attribute("to", FLOAT)),
        _node("Cast", ["attention_mask"], "ones", _attribute("to", FLOAT)),
        _node("Unsqueeze", ["numbers"], "first", _attribute("axes", [2])),
        _node("Unsqueeze", ["ones"], "second", _attribute("axes", [2])),
        _node("Concat", ["first", "second"], "both", _attribute("axis", 2)),
    ]
    return _graph(nodes, inputs, _tensor("both", FLOAT, 3) if rank == 3 else _tensor("numbers", FLOAT, 2))


def _graph(nodes: Sequence[bytes], inputs: Sequence[str], output: bytes) -> bytes:
    graph = b"".join(_field(1, node) for node in nodes) + _field(2, b"tiny")
    graph += b"".join(_field(11, _tensor(name, INT64, 2)) for name in inputs) + _field(12, output)
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 11))


def _node(operator: str, inputs: Sequence[str], output: str, attribute: bytes) -> bytes:
    names = b"".join(_field(1, name.encode()) for name in inputs)
    return names + _field(2, output.encode()) + _field(4, operator.encode()) + _field(5, attribute)


def _attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, int):
        return _field(1, name.encode()) + _field(3, value) + _field(20, ATTRIBUTE_INT)
    return _field(1, name.encode()) + b"".join(_field(8, item) for item in value) + _field(20, ATTRIBUTE_INTS)


def _tensor(name: str, element: int, rank: int) -> bytes:
    shape = b"".join(_field(1, _field(2, f"axis{axis}".encode())) for axis in range(rank))
    return _field(1, name.encode()) + _field(2, _field(1, _field(1, element) + _field(2, shape)))


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])
