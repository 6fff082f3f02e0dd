"""Find words that this project does not use, and print what to write instead: `make lint`.

The texts are written in plain technical English; CONTRIBUTING.md describes how. Each word below once had a private
meaning here, or makes a reader stop. A word is also found inside an identifier and across a line break.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = ("*.py", "*.js", "*.ts", "*.html", "*.css", "*.md", "*.toml", "*.yaml", "*.yml", "Makefile")

WORDS = {
    "(re|un|fore)?told": "the verb that fits: returned, reported, printed, recorded, given",
    "(re|fore)?tell(s|ing|er)?": "the verb that fits: return, report, print, record, pass",
    "so many": "N, a number of",
    "of before": "earlier, previous",
    "mend(s|ed|ing)?": "fix, repair",
    "beside": "next to, compared with, while ... runs",
    "alike": "the same, similar, equally",
    "as usual": "by default",
    "of (its|their) own(?=[.,;:)])": "its own, separate",
    "(every|some|any|no)body": "all users, an agent, no player, ...",
    "who(so)?ever": "any user, any agent, ...",
    "by itself|by themselves": "alone, automatically, without ...",
    "(?:(?:to|may|can|not|will|would|and) go|goes|going|went|gone) on": "continue",
    "yardsticks?": "benchmark opponent",
    "stands? for": "represents, means",
    "fair question": "valid argument",
    "in vain": "without effect",
    "lest|hence|thus|thereof|wherein|whence": "so that ... not, therefore, ...",
}


def compiled(word: str) -> re.Pattern[str]:
    """Return a pattern for a word that is no part of a longer word; a space matches a line break in a comment, too."""
    spaced = word.replace(" ", r"(?:[ _]|\s*\n[\s#/*>]*)")
    return re.compile(f"(?<![A-Za-z])(?:{spaced})(?![A-Za-z])", re.IGNORECASE)


PATTERNS = {compiled(word): advice for word, advice in WORDS.items()}


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the word and what to write instead, for each word found in a text."""
    for pattern, advice in PATTERNS.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), advice


def main() -> int:
    """Print the findings in all files that git tracks; return 1 if there are any."""
    listed = subprocess.run(["git", "ls-files", *FILES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    own = Path(__file__).relative_to(ROOT).as_posix()
    found = 0
    for name in sorted({*listed.splitlines()} - {own}):
        text = (ROOT / name).read_text(encoding="utf-8")
        for line, word, advice in sorted(findings(text)):
            print(f"{name}:{line}: {word!r}: write {advice}")
            found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
