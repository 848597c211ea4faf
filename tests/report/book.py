#!/usr/bin/env python3
"""Opens the book that `tools/book.py` built in a Chromium: pages fit wide and narrow windows, load without complaints and
without the network, and the search finds a word.

    tests/report/book.py [--pictures DIR]

Exits 1 when something is not as it should be, 77 without a Chromium.
"""

import argparse
import pathlib
import sys
import time

sys.dont_write_bytecode = True
import browser

BOOK = pathlib.Path(__file__).resolve().parents[2] / "target/book"
# Not pages of their own: the error page, the frame of the contents, and everything at once.
FRAMES = {"404.html", "toc.html", "print.html"}
WIDTHS = (1280, 390)
WORD = "logsumexp"

SEARCH = f"""(() => {{
    document.getElementById("mdbook-search-toggle").click();
    const field = document.querySelector("input[type=search]");
    field.value = "{WORD}";
    field.dispatchEvent(new Event("input", {{ bubbles: true }}));
    field.dispatchEvent(new KeyboardEvent("keyup", {{ bubbles: true }}));
}})()"""
RESULTS = "document.querySelectorAll('#mdbook-searchresults a').length"


def faults(page, pictures):
    for width in WIDTHS:
        for path in sorted(BOOK.rglob("*.html")):
            if path.name in FRAMES:
                continue
            name = path.relative_to(BOOK).as_posix()
            page.open(path, width)
            over = page.ask("document.documentElement.scrollWidth - innerWidth")
            if over > 0:
                yield f"{name}: {over} pixels wider than a window of {width}"
            if pictures:
                page.picture(pictures / f"{name.replace('/', '-')}-{width}.png", 0, 1200)
    page.open(BOOK / "index.html", WIDTHS[0])
    end = time.monotonic() + 20
    page.ask(SEARCH)
    while not page.ask(RESULTS):
        if time.monotonic() > end:
            yield f"the search does not find {WORD}"
            break
        time.sleep(0.1)
    yield from page.complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=pathlib.Path, help="keep pictures of the pages in this folder")
    options = parser.parse_args()
    program = browser.find()
    if not program:
        print("skipped: there is no Chromium")
        return 77
    if not (BOOK / "index.html").exists():
        print("there is no book: tools/book.py builds it")
        return 1
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    try:
        with browser.Browser(program) as page:
            found = list(faults(page, options.pictures))
    except browser.Failure as failure:
        found = [str(failure)]
    print("\n".join(found) if found else "the book fits its windows, and its search works")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
