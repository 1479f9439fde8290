"""docs/gallery.md is what the code makes."""

import importlib.util
from pathlib import Path

import pytest

from testbeds.gallery import page

PAGE = Path(__file__).parents[1] / "docs" / "gallery.md"


@pytest.mark.skipif(
    importlib.util.find_spec("reasoning_gym") is None, reason="the page shows the optional reasoning-gym tasks, too"
)
def test_the_gallery_shows_what_the_code_makes():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make gallery` and look at the difference"
