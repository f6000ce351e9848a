"""Texts become terms: the same for a document and for a question about it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.terms import MAX_QUERY_TERMS, MAX_TERM, document_terms, query_terms

ENGLISH = "The loom is the machine that weaves threads into cloth, and it was invented long ago."
SPANISH = "El telar es la máquina que teje los hilos en una tela, y fue inventado hace mucho tiempo."
GERMAN = "Der Webstuhl ist die Maschine, die aus den Fäden ein Tuch macht, und er wurde vor langer Zeit erfunden."
RUSSIAN = "Ткацкий станок — это машина, которая делает ткань из нитей, и он был изобретён очень давно."
JAPANESE = "織機は糸を布にする機械です。"
THAI = "กี่ทอผ้าเป็นเครื่องจักร"
KOREAN = "베틀은 실을 천으로 짜는 기계입니다"


def finds(question: str, document: str) -> bool:
    return not set(query_terms(question)).isdisjoint(document_terms(document))


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("weaving", ENGLISH),
        ("WEAVES", ENGLISH),
        ("Which machines were invented?", ENGLISH),
        ("inventar", SPANISH),
        ("¿Qué máquinas hay?", SPANISH),
        ("hilo", SPANISH),
        ("Maschinen", GERMAN),
        ("Was wurde erfunden?", GERMAN),
        ("машины", RUSSIAN),
        ("機械", JAPANESE),
        ("糸", "糸"),
        ("เครื่องจักร", THAI),
        ("기계입니다", KOREAN),
        ("ＷＥＡＶＥＳ", ENGLISH),
        ("cafe\u0301", "Le café est dans la rue."),
        ("strasse", "Die Straße ist in der Stadt und nicht auf dem Land."),
        ("4012", "The error ERR_4012 is known."),
        ("err 4012", "The error ERR_4012 is known."),
    ],
)
def test_a_question_finds_the_document_in_another_form_of_its_words(question: str, document: str) -> None:
    assert finds(question, document)


@pytest.mark.parametrize("question", ["the", "is it that", "¿de la que?", "und das ist", "", "—!?", "\x00\n"])
def test_stop_words_and_signs_alone_are_no_terms(question: str) -> None:
    assert [term for term in query_terms(question) if term in document_terms(ENGLISH)] == []


@pytest.mark.parametrize("word", ["war", "die", "fast", "son", "come"])
def test_a_word_that_is_a_stop_word_elsewhere_is_found_in_english(word: str) -> None:
    assert finds(word, f"It was known that the {word} had been over for years.")


def test_a_word_counts_as_often_as_it_occurs() -> None:
    terms = document_terms("Loom, looms and LOOM's: the looms of the town.")
    assert terms.count("loom") == 4


def test_scripts_without_spaces_give_overlapping_pairs() -> None:
    assert document_terms("機械学習 is ML") == ["機械", "械学", "学習", "ml"]
    assert document_terms("糸") == ["糸"]


def test_the_words_of_each_script_are_stemmed_by_a_language_of_that_script() -> None:
    mixed = document_terms("Это machines и машины, и они были здесь.")
    assert {"machin", "машин"} <= set(mixed)


def test_questions_have_each_term_once_and_not_too_many() -> None:
    terms = query_terms(" ".join(f"word{number} word{number}" for number in range(2 * MAX_QUERY_TERMS)))
    assert len(terms) == len(set(terms)) == MAX_QUERY_TERMS


texts = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("aéß İıſ字糸ー가ก็ิمरшΩΣς\u0300\u200d\u3000\u00a0\x1c😀_-'’"),
    ),
    max_size=80,
)


@given(texts)
def test_a_term_is_one_word_that_every_index_takes(text: str) -> None:
    for term in (*document_terms(text), *query_terms(text)):
        assert term
        assert len(term) <= MAX_TERM
        assert len(term.split()) == 1
        assert {unicodedata.category(sign) for sign in term}.isdisjoint({"Zs", "Zl", "Zp", "Cc", "Cf", "Po", "Sm"})


@given(texts, texts)
def test_the_same_text_has_the_same_terms_in_every_unicode_form(one: str, other: str) -> None:
    text = f"{one} {other}"
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")]
    assert len({tuple(document_terms(form)) for form in forms}) == 1


@pytest.mark.parametrize("language", [ENGLISH, SPANISH, GERMAN], ids=["english", "spanish", "german"])
@given(data=st.data())
def test_words_that_count_find_their_text(language: str, data: st.DataObject) -> None:
    words = [word for word in language.split() if len(word) > 5]
    asked = data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=5))
    assert finds(" ".join(asked), language)


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("Was kosten die Häuser in der Stadt und die Rechnungen", "Häuser Gärten Preise Rechnungen 4711"),
        ("Où sont les chevaux dans la ville", "Chevaux noirs: liste"),
        ("¿Qué hay en la ciudad de Zaragoza?", "Zaragoza 50001"),
    ],
)
def test_a_question_finds_the_words_of_a_text_that_shows_no_language(question: str, document: str) -> None:
    assert finds(question, document)
