"""The files of packaged models."""

import pytest

from core.inference.files import PackagedFile, PackagedModel
from core.model.errors import ConfigurationError


def packaged_model(distribution: str, path: str) -> PackagedModel:
    """Returns a model both of whose files are the same file."""
    file = PackagedFile(distribution=distribution, path=path, sha256="0" * 64)
    return PackagedModel("some", file, file, 512, requirements="requirements/some.txt", setting="WEFT_SOME_MODEL")


@pytest.mark.parametrize(
    ("distribution", "path"), [("weft-no-such-distribution", "model.onnx"), ("pytest", "no/such/file")]
)
def test_a_model_with_a_missing_file_is_refused_with_what_to_install_or_to_set(distribution: str, path: str) -> None:
    model = packaged_model(distribution, path)
    assert not model.is_installed()
    with pytest.raises(ConfigurationError, match=r"not installed.* requirements/some\.txt .* WEFT_SOME_MODEL"):
        model.verified()


def test_a_model_with_another_file_than_the_tested_one_is_refused() -> None:
    model = packaged_model("pytest", "pytest/__init__.py")
    assert model.is_installed(), "is_installed does not look into the file"
    with pytest.raises(ConfigurationError, match="another file"):
        model.verified()
