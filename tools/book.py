#!/usr/bin/env python3
"""Builds the book of docs/ in target/book and checks it: every page is a chapter, every link leads somewhere,
and the search finds words of every chapter.

    tools/book.py               installs mdbook where it is missing, builds and checks
    tools/book.py preprocess    what book.toml calls: mdBook's protocol of preprocessors on stdin and stdout
"""

import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

sys.dont_write_bytecode = True
import links

ROOT = links.ROOT
DOCS = ROOT / "docs"
BOOK = ROOT / "target/book"
FILES = "https://github.com/warpfold/warpfold/blob/main"
# Without its server and its watcher, which the book does not need.
MDBOOK = ["mdbook", "--version", "0.5.4", "--locked", "--no-default-features", "--features", "search"]


# As a preprocessor.


def rewrite(text, page):
    """Leads links that leave docs/ to the repository, and those to README.md to the page that it becomes."""

    def one(match):
        link = match.group(1)
        if links.ELSEWHERE.match(link) or link.startswith("#"):
            return match.group(0)
        path, mark, anchor = link.partition("#")
        target = (page.parent / path).resolve()
        if not target.is_relative_to(DOCS):
            new = f"{FILES}/{target.relative_to(ROOT).as_posix()}"
        elif target.is_dir():
            new = f"{FILES}/{target.relative_to(ROOT).as_posix()}"
        elif target.name == "README.md":
            new = path[: -len("README.md")] + "index.md"
        else:
            new = path
        return match.group(0).replace(link, new + mark + anchor)

    lines = text.split("\n")
    for number, _ in links.prose(text):
        lines[number - 1] = links.INLINE.sub(one, lines[number - 1])
    return "\n".join(lines)


def preprocess():
    """Rewrites the chapters of the book on stdin."""
    if sys.argv[2:3] == ["supports"]:
        return 0
    _, book = json.load(sys.stdin)

    def visit(items):
        for item in items:
            chapter = item.get("Chapter") if isinstance(item, dict) else None
            if chapter:
                if chapter.get("source_path"):
                    chapter["content"] = rewrite(chapter["content"], DOCS / chapter["source_path"])
                visit(chapter["sub_items"])

    # mdBook 0.4 calls them sections.
    visit(book["items"] if "items" in book else book["sections"])
    json.dump(book, sys.stdout)
    return 0


# As the step of the CI.


def mdbook():
    """The path of mdbook, installed if need be."""
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    search = os.pathsep.join([str(home / "bin"), os.environ.get("PATH", "")])
    found = shutil.which("mdbook", path=search)
    if not found:
        print("installing mdbook", flush=True)
        target = str(ROOT / "target/mdbook")
        # Unoptimised and without debug information, which compiles faster: the book is small.
        quick = ["--debug", "--config", "profile.dev.debug=0", "--target-dir", target]
        subprocess.run(["cargo", "install", *MDBOOK, *quick], check=True)
        found = shutil.which("mdbook", path=search)
    return found


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page of the book."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.update(values[key] for key in ("id", "name") if values.get(key))
        self.links += [values[key] for key in ("href", "src") if values.get(key)]


def chapters():
    """The pages that SUMMARY.md names."""
    return {link for _, link in links.links((DOCS / "SUMMARY.md").read_text(encoding="utf-8"))}


def missing_chapters():
    """Pages that nobody finds in the book."""
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"SUMMARY.md"}
    return [f"docs/{page}: not in SUMMARY.md" for page in sorted(pages - chapters())]


def dead_links():
    """Links of the book that lead to no file or anchor of it."""
    pages = {path.resolve(): Page(path) for path in BOOK.rglob("*.html")}
    for path, page in pages.items():
        # These are at home in any folder, so that their links are not relative to where they lie.
        if path.name in ("404.html", "toc.html"):
            continue
        for link in page.links:
            if links.ELSEWHERE.match(link) or link.startswith("//"):
                continue
            where, _, anchor = link.partition("#")
            target = (path.parent / urllib.parse.unquote(where.split("?")[0])).resolve() if where else path
            if not target.exists():
                yield f"{path.relative_to(BOOK)}: {link}: no such file"
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].anchors:
                yield f"{path.relative_to(BOOK)}: {link}: no such anchor"


def unsearchable():
    """Chapters that the index of the search does not know."""
    indexes = list(BOOK.glob("searchindex*.js"))
    if not indexes or not list(BOOK.glob("searcher*.js")):
        return ["there is no index to search in"]
    text = indexes[0].read_text(encoding="utf-8")
    known = set(re.findall(r"([\w./-]+\.html)#", text))
    html = {re.sub(r"README\.md$", "index.md", page)[: -len(".md")] + ".html" for page in chapters()}
    return [f"{page}: the search does not know it" for page in sorted(html - known)]


def main():
    if sys.argv[1:2] == ["preprocess"]:
        return preprocess()
    subprocess.run([sys.executable, str(ROOT / "tools/links.py")], check=True)
    subprocess.run([mdbook(), "build"], cwd=ROOT, check=True)
    found = [*missing_chapters(), *dead_links(), *unsearchable()]
    print("\n".join(found) if found else f"{len(chapters())} chapters, all linked and searchable: {BOOK.relative_to(ROOT)}/index.html")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
