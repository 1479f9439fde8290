"""Rules of the code base that no linter knows."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("testbeds", "models", "training", "experiments")
FILES = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_global_randomness_and_no_shifted_seeds(file):
    without_docstrings = re.sub(r'""".*?"""', "", file.read_text(), flags=re.DOTALL)
    code = re.sub(r"#.*", "", without_docstrings)
    for forbidden in (r"\brandom\.seed\(", r"torch\.manual_seed\(", r"np\.random\.seed", r"\bseed \+ ", r"\beval\("):
        assert not re.search(forbidden, code), f"{file.name} contains {forbidden}"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_exists_and_is_documented(package):
    module = importlib.import_module(package)
    assert module.__doc__
    for name in module.__all__:
        exported = getattr(module, name)
        if isinstance(exported, type) or callable(exported):
            assert exported.__doc__, f"{package}.{name} has no docstring"


def test_no_file_is_longer_than_an_idea():
    # design: a file that passes 450 lines is split
    assert [file.name for file in FILES if len(file.read_text().splitlines()) > 450] == []
