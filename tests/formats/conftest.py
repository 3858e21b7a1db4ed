from collections.abc import Iterator

import pytest
from localrun_testing.file_opener import FileOpener


@pytest.fixture(scope="module")
def opener() -> Iterator[FileOpener]:
    opener = FileOpener()
    yield opener
    opener.close()
