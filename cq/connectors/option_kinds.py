"""The options of a WITH clause: how the text of each must read, and what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from cq.records import dataclass


class OptionKind(Enum):
    """How an option's text must read."""

    TEXT = "text"
    INTEGER = "a whole number"
    BOOLEAN = "true or false"
    CHOICE = "one of a few words"
    PATH = "a path"
    CHARACTER = "one ASCII character"


@dataclass(frozen=True, slots=True)
class OptionDef:
    """One option. default: empty when there is none.  choices: for CHOICE, and what a CHARACTER may be besides one.

    low: the least INTEGER allowed.  named: the prefix of a further choice, followed by a name.
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
        """The values allowed, in words."""
        choices = (*self.choices, *([f"{self.named}NAME"] if self.named else []))
        if self.kind is OptionKind.CHARACTER:
            return ", or ".join([self.kind.value, *(choice or "empty" for choice in choices)])
        return "one of " + ", ".join(choices) if self.kind is OptionKind.CHOICE else self.kind.value

    @property
    def is_word(self) -> bool:
        """Whether letter case does not matter."""
        return self.kind in {OptionKind.CHOICE, OptionKind.BOOLEAN}

    def problems(self) -> Iterator[str]:
        """The ways in which the definition contradicts itself."""
        if self.kind is OptionKind.CHOICE and not self.choices:
            yield "has no choices"
        if self.default and not self.accepts(self.default):
            yield f"does not accept its default {self.default}"

    def accepts(self, text: str) -> bool:
        """Whether `text` is a valid value of this option."""
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
