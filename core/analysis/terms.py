"""Makes the terms by which BM25 searches texts. Documents and questions get their terms in the same way, on every
vector store.

A text is normalized by NFKC and case folding (Unicode Standard Annex 15; section 3.13 of the standard). Its words are
the runs of letters, marks and digits. Stop words are left out, and the Snowball stemmer of the text's language stems
all other words.

Scripts that are written without spaces do not show where a word ends. A run of such a script gives overlapping pairs of
characters instead of words. So a question of a single such character does not find a longer run that contains it.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

import regex
import Stemmer

from core.analysis.stop_words import STOP_WORDS

MAX_TERM = 64
"""The longest term, in characters. Longer terms are cut: they are hardly words, and indexes have limits."""
MAX_QUERY_TERMS = 1024
"""The most different terms of a question. Further terms are left out."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
_RUN = regex.compile(
    rf"(?P<unspaced>[{_UNSPACED}][{_UNSPACED}\p{{M}}]*+)|(?:(?![{_UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}])++"
)

# The languages of each script that have a stemmer. The first of them is the language of a text without stop words. The
# words of a script that is not listed are not stemmed.
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
    """Returns the terms of a document's text, each as often as it occurs. The order of the terms means nothing."""
    terms, words = _pairs_and_words(text)
    for script, script_words in _words_by_script(words).items():
        counts = _count_stop_words(script_words, script)
        # Where several languages have the highest count, ``max`` returns the first of them. So a text without any stop
        # word gets the script's first language.
        terms += _stem(script_words, max(counts, key=counts.__getitem__, default=None))
    return terms


def query_terms(text: str) -> list[str]:
    """Returns the different terms of a question, at most ``MAX_QUERY_TERMS``.

    A short question often does not show its language. Then its words are stemmed in every language that the question
    may be in. The stems of a wrong language find nothing, because they are no terms of documents in another language.

    A document that does not show its language, such as a list or a table, was stemmed in its script's first language.
    So every question is stemmed in that language too.
    """
    terms, words = _pairs_and_words(text)
    for script, script_words in _words_by_script(words).items():
        counts = _count_stop_words(script_words, script)
        if not counts:
            terms += script_words
            continue
        first_language = next(iter(counts))
        highest = max(counts.values())
        likely_languages = [language for language, count in counts.items() if count == highest]
        # One stop word does not prove a language, because an ordinary word of another language may be spelt the same.
        proven_languages = likely_languages if highest > 1 else []
        ignored = frozenset[str]().union(*(STOP_WORDS.get(language, frozenset()) for language in proven_languages))
        kept_words = [word for word in script_words if word not in ignored]
        for language in dict.fromkeys([first_language, *likely_languages]):
            terms += _stem(kept_words, language)
    return list(dict.fromkeys(terms))[:MAX_QUERY_TERMS]


def _pairs_and_words(text: str) -> tuple[list[str], list[str]]:
    """Returns the pairs of characters of runs without spaces, and the words of all other runs."""
    pairs: list[str] = []
    words: list[str] = []
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        run = match[0]
        if match["unspaced"] is None:
            words.append(run[:MAX_TERM])
        else:
            pairs += [run[start : start + 2] for start in range(max(len(run) - 1, 1))]
    return pairs, words


def _words_by_script(words: Iterable[str]) -> dict[str, list[str]]:
    by_script: dict[str, list[str]] = {}
    for word in words:
        by_script.setdefault(_script(word[0]), []).append(word)
    return by_script


@cache
def _script(letter: str) -> str:
    """Returns the script of a letter: the first word of the letter's Unicode name."""
    return unicodedata.name(letter, "").partition(" ")[0]


def _count_stop_words(words: Sequence[str], script: str) -> dict[str, int]:
    """Returns, for each language of a script, how many of the words are stop words of that language."""
    languages_by_stop_word = _languages_by_stop_word()
    counts = Counter(language for word in words for language in languages_by_stop_word.get(word, ()))
    return {language: counts[language] for language in _LANGUAGES.get(script, ())}


@cache
def _languages_by_stop_word() -> dict[str, list[str]]:
    languages: dict[str, list[str]] = {}
    for language, stop_words in STOP_WORDS.items():
        for stop_word in stop_words:
            languages.setdefault(stop_word, []).append(language)
    return languages


def _stem(words: Sequence[str], language: str | None) -> list[str]:
    """Returns the stems of the words that are no stop words of a language; without a language, the words themselves."""
    if language is None:
        return list(words)
    stop_words = STOP_WORDS.get(language, frozenset())
    # Threads may not share a stemmer. A new stemmer for each call costs little.
    stems: list[str] = Stemmer.Stemmer(language).stemWords([word for word in words if word not in stop_words])
    # The Arabic stemmer leaves nothing of vowel signs that stand alone, and an empty term would be no word.
    return [stem for stem in stems if stem]
