"""What an option of a WITH clause is: what its text must be readable as, and what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from cq.records import dataclass


class OptionKind(Enum):
    """What an option's text must be readable as."""

    TEXT = "text"
    INTEGER = "a whole number"
    BOOLEAN = "true or false"
    CHOICE = "one of a few words"
    PATH = "a path"
    CHARACTER = "one ASCII character"


@dataclass(frozen=True, slots=True)
class OptionDef:
    """One option. default: empty when there is none.  choices: for CHOICE, and what a CHARACTER may be besides one.

    low: the least INTEGER allowed.  named: the beginning of a further choice, which ends in a name.
    """

    kind: OptionKind
    doc: str
    default: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    low: int = 0
    named: str = ""

    @property
    def allowed(self) -> str:
        """What may be written, in words."""
        choices = (*self.choices, *([f"{self.named}NAME"] if self.named else []))
        if self.kind is OptionKind.CHARACTER:
            return ", or ".join([self.kind.value, *(choice or "empty" for choice in choices)])
        return "one of " + ", ".join(choices) if self.kind is OptionKind.CHOICE else self.kind.value

    @property
    def is_word(self) -> bool:
        """Whether it does not matter how its letters are written."""
        return self.kind in {OptionKind.CHOICE, OptionKind.BOOLEAN}

    def problems(self) -> Iterator[str]:
        """Where it contradicts itself."""
        if self.kind is OptionKind.CHOICE and not self.choices:
            yield "has no choices"
        if self.default and not self.accepts(self.default):
            yield f"does not accept its default {self.default}"

    def accepts(self, text: str) -> bool:
        """Whether `text` can be read as this option's kind."""
        match self.kind:
            case OptionKind.CHOICE:
                word = text.lower()
                named = bool(self.named) and word.startswith(self.named) and word[len(self.named) :].isidentifier()
                return named or word in self.choices
            case OptionKind.BOOLEAN:
                return text.lower() in {"true", "false"}
            case OptionKind.INTEGER:
                return text.isascii() and text.isdigit() and len(text) <= 18 and int(text) >= self.low
            case OptionKind.PATH:
                return bool(text) and "\0" not in text
            case OptionKind.CHARACTER:
                return text in self.choices or (len(text) == 1 and text.isascii() and text not in "\r\n\0")
            case OptionKind.TEXT:
                return True
