"""Words of a question that few lines of a text have."""

from localrun.chat.long_text.question_words import found_parts

LINES = [f"2026-11-27 INFO request {n} took a while" for n in range(2000)]
LINES[700] = "2026-11-27 ERROR payment declined"
LINES[1500] = "2026-11-27 ERROR disk of db-7 is full"
TEXT = "\n".join(LINES)


def found(question: str, most_bytes: int = 4000) -> list[tuple[str, int]]:
    return list(found_parts(TEXT, question, most_bytes))


def test_rare_words_of_the_question_are_found_in_any_case_and_as_plurals() -> None:
    assert found("Which errors were there, and why was the DISK full?") == [
        ("/disk/", 1),
        ("/full/", 1),
        ("/error/", 2),
    ]


def test_words_of_too_many_lines_or_of_none_are_not_offered() -> None:
    assert found("How many requests took long?") == []
    assert found("Which errors?", most_bytes=300) == []
    assert found("Any cats?") == []


def test_words_that_are_in_any_question_are_not_offered() -> None:
    text = TEXT.replace("is full", "is full from its time with which there")
    question = "From which time is there an error? Name each with its time."
    assert list(found_parts(text, question, 4000)) == [("/error/", 2)]


def test_a_text_without_lines_has_no_words() -> None:
    assert list(found_parts("", "Any errors?", 4000)) == []
