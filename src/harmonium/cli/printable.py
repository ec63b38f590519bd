"""Text from users, made safe for a terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Return text with control characters written out: a name of a column must not move the cursor.

    >>> print(printable("a\x1b[2Jb"))
    a\\x1b[2Jb
    """
    return "".join(char if _is_shown(char) else char.encode("unicode_escape").decode() for char in text)


def _is_shown(char: str) -> bool:
    return char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs", "Cf", "Co", "Zl", "Zp")
