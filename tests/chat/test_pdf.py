"""Text out of PDFs, and what is none."""

from pathlib import Path

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from localrun.base.errors import UsageError
from localrun.chat.attachments import read_attachment
from localrun.chat.pdf import pdf_text


def write_pdf(path: Path, *pages: str, password: str = "") -> Path:
    writer = PdfWriter()
    font = DictionaryObject(
        {NameObject(f"/{key}"): NameObject(f"/{value}") for key, value in
         {"Type": "Font", "Subtype": "Type1", "BaseFont": "Helvetica"}.items()}
    )  # fmt: skip
    for text in pages:
        page = writer.add_blank_page(300, 300)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode() if text else b"")
        page[NameObject("/Contents")] = writer._add_object(content)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)
    return path


def test_the_pages_of_a_pdf_become_text(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "two.pdf", "The moon", "pulls the sea", "")
    assert pdf_text(path, 1000) == "The moon\n\npulls the sea"
    assert read_attachment(path).text == "The moon\n\npulls the sea"


@pytest.mark.parametrize(
    ("pages", "password", "most", "says"),
    [
        (("",), "", 1000, "its pages are pictures"),
        (("The moon",), "secret", 1000, "locked with a password"),
        (("The moon", "pulls"), "", 10, "more than 10 characters"),
    ],
)
def test_a_pdf_without_text_for_us_says_why(
    tmp_path: Path, pages: tuple[str, ...], password: str, most: int, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        pdf_text(write_pdf(tmp_path / "a.pdf", *pages, password=password), most)


@pytest.mark.parametrize("data", [b"%PDF-1.7\n", b"%PDF-1.7\nxref\n0 9\ntrailer<</Root 1 0 R>>\nstartxref\n9\n%%EOF"])
def test_a_broken_pdf_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "broken.pdf").write_bytes(data)
    with pytest.raises(UsageError, match=r"broken\.pdf cannot be read as a PDF"):
        read_attachment(tmp_path / "broken.pdf")
