"""Texts become terms: a document and a question about the document get the same terms."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.analysis.terms import MAX_QUERY_TERMS, MAX_TERM, document_terms, query_terms

ENGLISH = "The loom is the machine that weaves threads into cloth, and it was invented long ago."
SPANISH = "El telar es la máquina que teje los hilos en una tela, y fue inventado hace mucho tiempo."
GERMAN = "Der Webstuhl ist die Maschine, die aus den Fäden ein Tuch macht, und er wurde vor langer Zeit erfunden."
RUSSIAN = "Ткацкий станок — это машина, которая делает ткань из нитей, и он был изобретён очень давно."
STRASSE = "Die Straße ist in der Stadt und nicht auf dem Land."
HOUSES = "Was kosten die Häuser in der Stadt und die Rechnungen"


def matches(question: str, document: str) -> bool:
    return not set(query_terms(question)).isdisjoint(document_terms(document))


@pytest.mark.parametrize(
    ("question", "document"),
    [
        *((question, ENGLISH) for question in ("weaving", "WEAVES", "ＷＥＡＶＥＳ", "Which machines were invented?")),
        *((question, SPANISH) for question in ("inventar", "¿Qué máquinas hay?", "hilo")),
        *((question, GERMAN) for question in ("Maschinen", "Was wurde erfunden?")),
        *[("машины", RUSSIAN), ("機械", "織機は糸を布にする機械です。"), ("糸", "糸")],
        *[("เครื่องจักร", "กี่ทอผ้าเป็นเครื่องจักร"), ("기계입니다", "베틀은 실을 천으로 짜는 기계입니다")],
        *[("cafe\u0301", "Le café est dans la rue."), ("strasse", STRASSE), ("strasse", "The Straße is a road.")],
        *((question, "The error ERR_4012 is known.") for question in ("4012", "err 4012")),
        # A list or a table does not show its language.
        *[(HOUSES, "Häuser Gärten Preise Rechnungen 4711"), ("¿Qué hay en la ciudad de Zaragoza?", "Zaragoza 50001")],
        ("Où sont les chevaux dans la ville", "Chevaux noirs: liste"),
        # Each of these English words is a stop word of another language.
        *((word, f"It was known that the {word} had been over.") for word in ("war", "die", "fast", "son", "come")),
    ],
)
def test_a_question_matches_a_document_with_other_forms_of_its_words(question: str, document: str) -> None:
    assert matches(question, document)


@pytest.mark.parametrize("question", ["the", "is it that", "¿de la que?", "und das ist", "", "—!?", "\x00\n"])
def test_a_question_of_stop_words_and_signs_matches_no_document(question: str) -> None:
    assert not matches(question, ENGLISH)


def test_the_terms_of_a_document_are_all_its_stems_and_pairs_of_characters() -> None:
    assert document_terms("Loom, looms and LOOM's: the looms of the town.") == ["loom"] * 4 + ["town"]
    assert document_terms("機械学習 is ML") == ["機械", "械学", "学習", "ml"]
    assert document_terms("糸") == ["糸"]
    # The words of each script are stemmed in a language of that script.
    assert document_terms("machines и машины") == ["machin", "машин"]


def test_a_question_has_each_term_once_and_at_most_1024_terms() -> None:
    terms = query_terms(" ".join(f"word{number} word{number}" for number in range(2 * MAX_QUERY_TERMS)))
    assert len(terms) == len(set(terms)) == MAX_QUERY_TERMS == 1024


CHARACTERS = "aéß İıſ字糸ー가ก็ิمरшΩΣς\u0300\u200d\u3000\u00a0\x1c😀_-'’"
texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(CHARACTERS), max_size=80)


@given(texts)
@example("\u064b")
@example("x" * (MAX_TERM + 1))
def test_a_term_is_a_single_word_that_every_index_can_store(text: str) -> None:
    for term in (*document_terms(text), *query_terms(text)):
        assert 0 < len(term) <= MAX_TERM
        assert len(term.split()) == 1
        categories = {unicodedata.category(character) for character in term}
        assert categories.isdisjoint({"Zs", "Zl", "Zp", "Cc", "Cf", "Po", "Sm"})


@given(texts, texts)
def test_a_text_has_the_same_terms_in_every_unicode_normal_form(text: str, further_text: str) -> None:
    text = f"{text} {further_text}"
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")]
    assert len({tuple(document_terms(form)) for form in forms}) == 1


@pytest.mark.parametrize("text", [ENGLISH, SPANISH, GERMAN], ids=["english", "spanish", "german"])
@given(data=st.data())
def test_any_long_words_of_a_text_match_the_text(text: str, data: st.DataObject) -> None:
    long_words = [word for word in text.split() if len(word) > 5]
    words = data.draw(st.lists(st.sampled_from(long_words), min_size=1, max_size=5))
    assert matches(" ".join(words), text)
