"""The files of packaged models."""

import pytest

from core.inference.files import PackagedFile
from core.model.errors import ConfigurationError


def packaged(distribution: str, path: str) -> PackagedFile:
    return PackagedFile(
        distribution=distribution,
        path=path,
        sha256="0" * 64,
        requirements="requirements/some.txt",
        setting="WEFT_SOME_MODEL",
    )


def test_a_missing_package_says_what_to_install_or_to_set() -> None:
    missing = packaged("weft-no-such-distribution", "model.onnx")
    assert not missing.is_installed()
    with pytest.raises(ConfigurationError, match=r"requirements/some\.txt .* WEFT_SOME_MODEL"):
        missing.verified()


def test_a_file_that_is_missing_in_its_package_is_not_there() -> None:
    missing = packaged("pytest", "no/such/file")
    assert not missing.is_installed()
    with pytest.raises(ConfigurationError, match="not installed"):
        missing.verified()


def test_another_file_than_the_tested_one_is_refused() -> None:
    other = packaged("pytest", "pytest/__init__.py")
    assert other.is_installed(), "which file it is, is not looked at"
    with pytest.raises(ConfigurationError, match="another file"):
        other.verified()
