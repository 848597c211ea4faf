#!/usr/bin/env python3
"""Checks that every relative link of the repository's Markdown leads to a file, and to a heading of it.

    tools/links.py [FILE...]        without files: every Markdown file that git knows

Exits 1 and prints one line for each link that leads nowhere.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Inline links and images, and definitions of references.
INLINE = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s+\".*\")?\s*$")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def prose(text):
    """The lines of a page, numbered, without code: nothing in code is a link."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = mark.group(1) if fence is None else None
        elif fence is None:
            yield number, re.sub(r"(`+).*?\1", "", line)


def slug(heading):
    """The anchor that hosts of repositories and mdBook give a heading."""
    words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    words = re.sub(r"[`*]", "", words).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(path):
    """Where links into a page may lead."""
    found, seen, fence = set(), {}, False
    for line in path.read_text(encoding="utf-8").splitlines():
        fence ^= line.lstrip().startswith("```")
        heading = None if fence else re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            name = slug(heading.group(1))
            count = seen.get(name, 0)
            seen[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
        found.update(re.findall(r"\b(?:id|name)=\"([^\"]+)\"", line))
    return found


def links(text):
    """The links of a page with the numbers of their lines."""
    for number, line in prose(text):
        for match in INLINE.finditer(line):
            yield number, match.group(1)
        definition = DEFINITION.match(line)
        if definition:
            yield number, definition.group(1)


def faults(page):
    """What is wrong with the links of a page, one sentence each."""
    for number, link in links(page.read_text(encoding="utf-8")):
        if ELSEWHERE.match(link):
            continue
        where = f"{page.relative_to(ROOT)}:{number}: {link}"
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_relative_to(ROOT):
            yield f"{where}: leaves the repository"
        elif not target.exists():
            yield f"{where}: no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{where}: no such heading"


def pages():
    """Every Markdown file that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for path in (ROOT / line for line in listed.splitlines()) if path.is_file()]


def main():
    chosen = [pathlib.Path(name).resolve() for name in sys.argv[1:]] or pages()
    found = [fault for page in chosen for fault in faults(page)]
    print("\n".join(found) if found else f"the links of {len(chosen)} pages lead somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
