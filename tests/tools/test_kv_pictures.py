"""The pictures of docs/kv-cache.md are those the script draws, and they are well-formed."""

import xml.etree.ElementTree as ET

import pytest

from tools.write_kv_pictures import FOLDER, PICTURES, WIDTH


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_up_to_date(name: str) -> None:
    drawn = PICTURES[name]()
    assert (FOLDER / f"{name}.svg").read_text("utf-8") == drawn.svg(), "run `python -m tools.write_kv_pictures`"
    shapes = ET.fromstring(drawn.svg())
    for box in shapes.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(box.attrib["x"]) + float(box.attrib["width"]) <= WIDTH, "nothing is cut off"
        assert float(box.attrib["y"]) + float(box.attrib["height"]) <= drawn.height
    assert shapes.findtext("{http://www.w3.org/2000/svg}title")


def test_the_page_shows_every_picture_with_words_for_those_who_cannot_see_it() -> None:
    page = (FOLDER.parent / "kv-cache.md").read_text("utf-8")
    for name, draw in PICTURES.items():
        assert f"![{draw().title}](kv-cache/{name}.svg)" in page
