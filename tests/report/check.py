#!/usr/bin/env python3
"""Opens the report in a Chromium: nothing is complained of, every chart has its marks, the table sorts, both themes and a narrow page work.

    tests/report/check.py WARPFOLD [--pictures DIR]

Exits 1 when something is not as it should be, 77 without a Chromium.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import browser

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "crates/ladder/tests/data/sample.json"

# Each must be true.
CHECKS = {
    "there are charts of all kinds": """
        document.querySelectorAll("figure").length > 10 &&
        ["rect.mark", "circle.mark", "rect.cell"].every(kind => document.querySelector("svg " + kind))""",
    "every chart is drawn for wide and for narrow pages with all of its marks": """
        [...document.querySelectorAll("figure")].every(figure =>
            figure.querySelectorAll("svg").length === 2 && Number(figure.dataset.marks) > 0 &&
            [...figure.querySelectorAll("svg")].every(svg => svg.querySelectorAll(".mark").length === Number(figure.dataset.marks)))""",
    "one drawing of each chart is to be seen": """
        [...document.querySelectorAll("figure")].every(figure =>
            [...figure.querySelectorAll("svg")].filter(svg => svg.getBoundingClientRect().width > 200).length === 1)""",
    "marks have an extent and lie inside of their drawing": """
        [...document.querySelectorAll("figure svg")].filter(svg => svg.getBoundingClientRect().width > 0).every(svg => {
            const all = svg.getBoundingClientRect();
            return [...svg.querySelectorAll(".mark, text")].every(mark => {
                const it = mark.getBoundingClientRect();
                return it.width > 0 && it.height > 0 && it.left >= all.left - 2 && it.right <= all.right + 2 && it.bottom <= all.bottom + 2;
            });
        })""",
    "charts have names and words for those who cannot see them": """
        [...document.querySelectorAll("figure svg")].every(svg => svg.getAttribute("role") === "img" &&
            svg.getAttribute("aria-labelledby").split(" ").every(id => document.getElementById(id).textContent.length > 5))""",
    "ids are unique": """
        new Set([...document.querySelectorAll("[id]")].map(e => e.id)).size === document.querySelectorAll("[id]").length""",
    "links lead somewhere": """
        [...document.querySelectorAll("a[href^='#']")].every(a => document.getElementById(a.getAttribute("href").slice(1)))""",
    "the page is no wider than its window": "document.documentElement.scrollWidth <= innerWidth",
    "the headline says from where to where, and how many expectations failed": """
        /^From \\d+ to \\d+ GB\\/s: [\\d.]+ times as fast$/.test(document.querySelector(".headline").textContent) &&
        /\\d+ of \\d+ expectations failed.*\\d+ of the texts' listings are wrong/.test(document.querySelector(".facts").textContent)""",
    "the chart of speed comes first, then the table, then the faults": """
        ["headline", "speed", "table", "faults", "steps"].map(id => document.getElementById(id).getBoundingClientRect().top)
            .every((top, i, all) => i === 0 || top > all[i - 1])""",
    "the verdict is the second column, in words and in colours": """
        document.querySelectorAll("#rungs thead th")[1].textContent === "verdict" &&
        new Set([...document.querySelectorAll("#rungs .verdict")].map(v => getComputedStyle(v).color)).size >= 2 &&
        [...document.querySelectorAll("#rungs .verdict")].every(v => v.textContent.length > 5)""",
    "no table is cut off, with everything unfolded": """
        new Promise(done => {
            const folds = [...document.querySelectorAll("details")].filter(d => d.querySelector(".scroll"));
            for (const fold of folds) fold.open = true;
            setTimeout(() => {
                const cut = [...document.querySelectorAll(".scroll")].filter(b => b.clientWidth > 0 && b.scrollWidth > b.clientWidth + 1);
                for (const fold of folds) fold.open = false;
                done(cut.length === 0 || cut.map(b => b.getAttribute("aria-label")).join());
            }, 200);
        })""",
    "numbers of bars keep away from the line of the limit": """
        [...document.querySelectorAll("figure svg")].filter(svg => svg.getBoundingClientRect().width > 0 && svg.querySelector("rect.mark") && svg.querySelector(".reference"))
            .every(svg => {
                const line = svg.querySelector(".reference").getBoundingClientRect();
                return [...svg.querySelectorAll("text.value, text.on-mark")].every(text => {
                    const it = text.getBoundingClientRect();
                    return it.right < line.left || it.left > line.right || it.bottom < line.top || it.top > line.bottom;
                });
            })""",
    "a wide page uses its right half": """
        innerWidth < 1000 || [...document.querySelectorAll("#speed figure, #steps section")].filter(e => e.getBoundingClientRect().left >= innerWidth / 2 - 40).length > 10""",
    "kernels are folded beneath their rungs": """
        document.querySelectorAll("#rungs details").length > 20 &&
        [...document.querySelectorAll("#rungs details pre")].every(pre => pre.textContent.length > 40) &&
        [...document.querySelectorAll("#rungs details pre")].filter(pre => pre.textContent.includes("blockIdx")).length > 20""",
}

# The first cells of a column, from the top, of what is shown.
COLUMN = """(name) => {
    const heads = [...document.querySelectorAll("#rungs thead th")];
    const at = heads.findIndex(head => head.textContent.trim() === name);
    return [...document.querySelectorAll("#rungs tbody")].filter(body => !body.hidden).map(body => body.rows[0].cells[at].textContent);
}"""
CLICK = """(name) => {
    const heads = [...document.querySelectorAll("#rungs thead th")];
    const head = heads.find(head => head.textContent.trim() === name);
    head.querySelector("button").click();
    return head.getAttribute("aria-sort");
}"""


def numbers(texts):
    """The numbers of a column, in its order, and what is none behind them."""
    found = [text.replace("\u202f", "") for text in texts]
    return [float(text) for text in found if text != "-"], found


def check_table(page):
    column = lambda name: page.ask(f"({COLUMN})({name!r})")
    click = lambda name: page.ask(f"({CLICK})({name!r})")
    before = column("rung")
    for name, wanted in (("GB/s", "ascending"), ("GB/s", "descending"), ("time, us", "ascending")):
        if click(name) != wanted:
            yield f"{name} is not sorted {wanted}"
        values, texts = numbers(column(name))
        if values != sorted(values, reverse=wanted == "descending") or len(values) < 20:
            yield f"{name} is not {wanted}: {texts}"
        if "-" in texts and texts[-1] != "-":
            yield f"{name}: what was not measured is not last: {texts}"
    click("rung")
    if column("rung") != sorted(before, key=str.lower):
        yield f"names are not sorted: {column('rung')}"
    shown = len(column("rung"))
    page.ask("""(() => { const group = document.getElementById("group"); group.value = ""; group.dispatchEvent(new Event("change")); })()""")
    if len(column("rung")) <= shown:
        yield "the choice of all groups shows no more rows"
    page.ask("""(() => { const group = document.getElementById("group"); group.value = "1"; group.dispatchEvent(new Event("change")); })()""")
    page.ask("location.hash = '#source-unroll8'")
    if not page.ask("new Promise(done => setTimeout(() => { const d = document.getElementById('source-unroll8'); done(d.open && !d.closest('tbody').hidden); }, 50))"):
        yield "a link to a kernel does not unfold it"


def check_themes(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    # The one mark of a bar chart that must be seen on its ground.
    mark = "getComputedStyle(document.querySelector('figure rect.mark')).fill"
    before = page.ask(ground), page.ask(mark)
    page.ask("document.getElementById('theme').click()")
    after = page.ask(ground), page.ask(mark)
    if before[0] == after[0] or before[1] == after[1]:
        yield f"the button changes no colours: {before}, {after}"
    page.ask("document.getElementById('theme').click()")
    if (page.ask(ground), page.ask(mark)) != before:
        yield "the button does not change back"
    if before[0] == before[1]:
        yield "marks have the colour of their ground"
    page.ask("localStorage.clear()")


def check(page, report):
    grounds = set()
    for width, dark in ((1300, False), (1300, True), (390, False), (390, True)):
        page.open(report, width, dark)
        where = f"{width} wide, {'dark' if dark else 'light'}"
        grounds.add(page.ask("getComputedStyle(document.body).backgroundColor"))
        for name, expression in CHECKS.items():
            if page.ask(expression) is not True:
                yield f"{where}: not so: {name}: {page.ask(expression)}"
        for what in (*check_themes(page), *(check_table(page) if width == 1300 and not dark else ())):
            yield f"{where}: {what}"
    if len(grounds) != 2:
        yield f"light and dark have one ground: {grounds}"
    yield from (f"the page complains: {text}" for text in page.complaints)


def check_pictures(page, folder, pages):
    """The pictures of Markdown and the drawings, each by itself."""
    names = sorted(folder.glob("*.svg"))
    if len(names) < pages:
        yield f"there are only {len(names)} pictures"
    for name in names:
        page.open(name)
        if page.ask("document.documentElement.nodeName === 'svg' && document.querySelectorAll('text').length > 2") is not True:
            yield f"{name.name} is no drawing"
    yield from (f"a picture complains: {text}" for text in page.complaints)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("warpfold")
    parser.add_argument("--pictures", type=pathlib.Path, help="leave pictures of the page here")
    arguments = parser.parse_args()
    program = browser.find()
    if program is None:
        print("SKIPPED: there is no Chromium to look at the report with")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        report = folder / "report.html"
        command = [arguments.warpfold, "ladder", "report", str(SAMPLE)]
        subprocess.run([*command, "-o", str(report)], check=True)
        subprocess.run([*command, "-o", str(folder / "report.md")], check=True)
        subprocess.run([arguments.warpfold, "ladder", "report", "--drawings", str(folder)], check=True)
        try:
            with browser.Browser(program) as page:
                wrong = [*check(page, report), *check_pictures(page, folder, 20)]
                if arguments.pictures:
                    arguments.pictures.mkdir(parents=True, exist_ok=True)
                    for width, dark in ((1300, False), (1300, True), (390, False), (390, True)):
                        page.open(report, width, dark)
                        name = f"report-{width}-{'dark' if dark else 'light'}.png"
                        page.picture(arguments.pictures / name, 0, 3000)
        except browser.Failure as failure:
            sys.exit(f"error: {failure}")
    for line in wrong:
        print(line)
    if wrong:
        sys.exit(1)
    print("the report is as it should be")


if __name__ == "__main__":
    main()
