"""The terms of a text for BM25: the same for documents and questions, on every vector store.

Words are runs of letters, marks and digits, after NFKC and case folding (Unicode Standard Annex 15; section 3.13 of the
standard). Stop words are dropped, and the rest is stemmed by the Snowball stemmer of the text's language. Scripts that
are written without spaces give overlapping pairs of characters instead, so that a question of one such character finds
no longer word.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

import regex
import Stemmer

from core.analysis.stop_words import STOP_WORDS

MAX_TERM = 64
"""Longer terms are cut, in characters: what is longer is no word, and indexes have bounds."""
MAX_QUERY_TERMS = 1024
"""Different terms of one question that are searched for; further ones are left out."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
_RUN = regex.compile(
    rf"(?P<unspaced>[{_UNSPACED}][{_UNSPACED}\p{{M}}]*+)|(?:(?![{_UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}])++"
)

# The first of a script is what a text is taken for that does not say. A script that is not here is not stemmed.
_LANGUAGES = {
    "LATIN": tuple(language for language in STOP_WORDS if language != "russian"),
    "CYRILLIC": ("russian",),
    "GREEK": ("greek",),
    "ARABIC": ("arabic",),
    "DEVANAGARI": ("hindi",),
    "TAMIL": ("tamil",),
    "ARMENIAN": ("armenian",),
}


def document_terms(text: str) -> list[str]:
    """The terms of a document's text, as often as they occur, in no order that means anything."""
    terms, words = _runs(text)
    for script, found in _by_script(words).items():
        counts = _stop_words_of(found, script)
        # The first of the best: without any stop word, the script's first language.
        terms += _stemmed(found, max(counts, key=counts.__getitem__, default=None))
    return terms


def query_terms(text: str) -> list[str]:
    """The different terms of a question.

    A short question often does not show its language. Then its words are taken as of every language that it may be
    in: what is no word of a document's language finds nothing there. A text that shows none, a list or a table, was
    taken for the script's first language, so that one is always among them.
    """
    terms, words = _runs(text)
    for script, found in _by_script(words).items():
        counts = _stop_words_of(found, script)
        most = max(counts.values(), default=0)
        spoken = [language for language, count in counts.items() if count == most]
        # A single stop word may be a word that counts in another language.
        sure = [STOP_WORDS.get(language, frozenset()) for language in spoken] if most > 1 else []
        left = [word for word in found if not any(word in stop_words for stop_words in sure)]
        for language in dict.fromkeys([*counts][:1] + spoken):
            terms += _stemmed(left, language)
        if not counts:
            terms += found
    return list(dict.fromkeys(terms))[:MAX_QUERY_TERMS]


def _runs(text: str) -> tuple[list[str], list[str]]:
    """Pairs of characters from runs without spaces, and words."""
    pairs: list[str] = []
    words: list[str] = []
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        run = match[0]
        if match["unspaced"] is None:
            words.append(run[:MAX_TERM])
        else:
            pairs += [run[at : at + 2] for at in range(max(len(run) - 1, 1))]
    return pairs, words


def _by_script(words: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in words:
        found.setdefault(_script(word[0]), []).append(word)
    return found


@cache
def _script(letter: str) -> str:
    """The first word of a character's name, which for letters is their script."""
    return unicodedata.name(letter, "").partition(" ")[0]


def _stop_words_of(words: Sequence[str], script: str) -> dict[str, int]:
    """How many of the words are stop words, by language of the script."""
    speakers = _speakers()
    counts = Counter(language for word in words for language in speakers.get(word, ()))
    return {language: counts[language] for language in _LANGUAGES.get(script, ())}


@cache
def _speakers() -> dict[str, list[str]]:
    """The languages that have a stop word."""
    speakers: dict[str, list[str]] = {}
    for language, words in STOP_WORDS.items():
        for word in words:
            speakers.setdefault(word, []).append(language)
    return speakers


def _stemmed(words: Sequence[str], language: str | None) -> list[str]:
    """The words without a language's stop words, stemmed; as they are when there is no language."""
    if language is None:
        return list(words)
    stop_words = STOP_WORDS.get(language, frozenset())
    # A stemmer is not safe for threads, and quickly made.
    stemmed: list[str] = Stemmer.Stemmer(language).stemWords([word for word in words if word not in stop_words])
    return stemmed
