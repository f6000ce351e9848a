"""Made-up documents in many scripts, with the characters that splitters, tokenizers and offsets find hard."""

from dataclasses import dataclass
from random import Random

SCRIPTS = (
    "abcdefghijklmnopqrstuvwxyz",
    "àéîõüçñßøœ",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "абвгдежзийклмнопрстуфхцчшщы",
    "אבגדהוזחטיכלמנסעפצקרשת",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "कखगघचछजझटठडढणतथदधन",
    "กขคงจฉชซญฐณดตถทธน",
    "가나다라마바사아자차카타파하",
    "あいうえおかきくけこアイウエオカキクケコ",
    "織機糸布紡績染色縦横経緯",
)
MARKS = ("\u0301", "\u0323\u0302", "\u093f", "\u0e31", "\u064e", "\u0e49\u0e33")
SIGNS = ("😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "👍🏽", "❤️", "—", "…", "[1]", "---", "&", "x" * 130, "42", "3.14", "\U00020bb7")
SPACES = (" ", " ", " ", " ", " ", "\t", "\u00a0", "\u3000", "  ", "\n", "\r\n")
BREAKS = ("\n\n", "\n\n", "\n\n\n \n", "\r\n\r\n", "\n\n" + " " * 40)
LONG_SPACE = "\n" * 1100
PAGE_BREAKS = ("\f", "\n\f\n", " \f", "\f\f")


@dataclass(frozen=True)
class Scribble:
    """A document to ingest."""

    content: bytes
    source_type: str


class Pen:
    """Writes random documents."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def document(self) -> Scribble:
        """A document in plain text, Markdown or HTML. Some plain texts and Markdown documents have pages."""
        paragraphs = [self.paragraph() for _ in range(self._chance.choice((1, 3, 8, 20)))]
        match self._chance.randrange(4):
            case 0:
                return Scribble(self._text(paragraphs).encode("utf-16"), "text/plain")
            case 1:
                return Scribble(self._text(paragraphs).encode(), "text/plain; charset=utf-8")
            case 2:
                return Scribble(self._markdown(paragraphs).encode(), "text/markdown")
            case _:
                return Scribble(self._html(paragraphs).encode(), "text/html")

    def words(self, count: int) -> str:
        return " ".join(self.word() for _ in range(count))

    def word(self) -> str:
        if self._chance.random() < 0.1:
            return self._chance.choice(SIGNS)
        letters = self._chance.choices(self._chance.choice(SCRIPTS), k=self._chance.choice((1, 3, 5, 8, 24)))
        return "".join(one + (self._chance.choice(MARKS) if self._chance.random() < 0.05 else "") for one in letters)

    def paragraph(self) -> str:
        count = self._chance.choice((1, 6, 20, 40))
        return "".join(self.word() + self._chance.choice(SPACES) for _ in range(count)).strip()

    def _text(self, paragraphs: list[str]) -> str:
        pages = self._chance.random() < 0.5
        return "".join(paragraph + self._break(pages=pages) for paragraph in paragraphs)

    def _break(self, *, pages: bool) -> str:
        if pages and self._chance.random() < 0.3:
            return self._chance.choice(PAGE_BREAKS)
        return LONG_SPACE if self._chance.random() < 0.1 else self._chance.choice(BREAKS)

    def _markdown(self, paragraphs: list[str]) -> str:
        headed = [
            f"{'#' * self._chance.randint(1, 3)} {self.words(2)}\n\n{paragraph}"
            if self._chance.random() < 0.3
            else paragraph
            for paragraph in paragraphs
        ]
        front = "---\nlang: de\n---\n" if self._chance.random() < 0.3 else ""
        return front + self._text(headed)

    def _html(self, paragraphs: list[str]) -> str:
        forms = ("<p>{}</p>", "<h2>{}</h2>", "<ul><li>{}</li></ul>", "<blockquote>{}</blockquote>", "<p><b>{}</b><br>")
        escaped = (one.replace("&", "&amp;").replace("<", "&lt;") for one in paragraphs)
        body = "\n".join(self._chance.choice(forms).format(one) for one in escaped)
        return f"<html><head><title>{self.words(2)}</title></head><body>{body}</body></html>"
