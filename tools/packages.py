#!/usr/bin/env python3
"""Makes the packages of the workspace and looks into them, as the registry would and as a reader does.

    tools/packages.py                   packages, compiles each archive, looks inside: what the CI runs
    tools/packages.py --no-verify       the same without compiling: seconds
    tools/packages.py --test NAME...    also runs the tests of these packages, from their unpacked archives

Nothing is uploaded. Archives lie in target/package. Exits 1 where a package is not fit to be published.
"""

import argparse
import json
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or "target")
TARGET = TARGET if TARGET.is_absolute() else ROOT / TARGET

# A package has no profile of its own and would be built in a folder of its own, each with all of its dependencies. With
# the workspace's profile and folder, what is built there already is used again.
BUILD = {
    "CARGO_TARGET_DIR": str(TARGET),
    "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
    "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
}

# The registry takes 10 MiB; one that is much smaller notices a file that came in by mistake.
MOST_BYTES = 8 << 20

# The registry takes unknown slugs without an error, and drops them. These are the ones that ours may use.
CATEGORIES = {
    "algorithms", "command-line-utilities", "compression", "concurrency", "development-tools::profiling",
    "development-tools::testing", "emulators", "encoding", "hardware-support", "mathematics", "parser-implementations",
    "science",
}

# Paths that leave the package, and why they may.
LEAVING = {
    ("warpfold-ladder", "src/faulty.rs"): "a test of a page, which is content where there is no page",
    ("warpfold-cuda", "tests/common/mod.rs"): "only the tests that the package leaves out call it, or name another folder",
    ("warpfold", "tests/front/seeds.rs"): "an ignored test that writes the corpus of the repository's fuzz targets",
    ("warpfold-files", "tests/formats/seeds.rs"): "an ignored test that writes the corpus of the repository's fuzz targets",
}

INCLUDED = re.compile(r'(?:include_str!|include_bytes!|include!)\s*\(\s*"([^"]+)"|#\[\s*path\s*=\s*"([^"]+)"')
FROM_ROOT = re.compile(r'env!\("CARGO_MANIFEST_DIR"\)[^;]*?"([^"\n]*\.\./[^"\n]*)"')


def cargo(*words, **more):
    return subprocess.run([os.environ.get("CARGO", "cargo"), *words], cwd=ROOT, env=os.environ | BUILD, check=True, **more)


def cargo_version():
    words = cargo("--version", capture_output=True, text=True).stdout.split()
    return tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", words[1]).groups())


def published():
    """The packages that are published, by name, as cargo knows them."""
    known = json.loads(cargo("metadata", "--no-deps", "--format-version", "1", capture_output=True, text=True).stdout)
    return {package["name"]: package for package in known["packages"] if package["publish"] != []}


def faults_of_manifest(package):
    """What a manifest lacks."""
    for key in ("description", "license", "repository", "homepage", "documentation", "readme", "rust_version"):
        if not package.get(key):
            yield f"no {key}"
    keywords, categories = package["keywords"], package["categories"]
    if not 1 <= len(keywords) <= 5:
        yield f"{len(keywords)} keywords: 1 to 5 are allowed"
    for word in keywords:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_+-]{0,19}", word):
            yield f"the registry refuses the keyword {word!r}"
    if not 1 <= len(categories) <= 5:
        yield f"{len(categories)} categories: 1 to 5 are allowed"
    for unknown in sorted(set(categories) - CATEGORIES):
        yield f"the category {unknown!r} is not among those of tools/packages.py: check its slug"
    if any(target["kind"] == ["lib"] for target in package["targets"]):
        docs = (package.get("metadata") or {}).get("docs", {}).get("rs", {})
        if not docs.get("all-features") or not docs.get("targets"):
            yield "[package.metadata.docs.rs] names no features or no targets"
    for dependency in package["dependencies"]:
        # A path alone is dropped when a package is made.
        if dependency.get("path") and dependency["req"] == "*":
            yield f"the dependency on {dependency['name']} has a path and no version"
        # They use what is hidden in each other's documentation, and what another version may lack.
        elif dependency.get("path") and dependency["req"] != f"={package['version']}":
            yield f"the dependency on {dependency['name']} is not pinned to ={package['version']}"


def read_archive(path):
    """The files of an archive by their paths in the package, and what is no file."""
    files, others = {}, []
    with tarfile.open(path) as archive:
        for member in archive:
            name = member.name.partition("/")[2]
            if member.isfile():
                files[name] = archive.extractfile(member).read()
            elif not member.isdir():
                others.append(name)
    return files, others


def faults_of_paths(name, files):
    """Paths in the sources that lead to what is not in the package."""
    for path, content in files.items():
        if not path.endswith(".rs") or (name, path) in LEAVING:
            continue
        text = content.decode()
        for found in INCLUDED.finditer(text):
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[1] or found[2]))
            if wanted not in files:
                yield f"{path} includes {wanted}, which is not in the package"
        for found in FROM_ROOT.finditer(text):
            wanted = posixpath.normpath(found[1].lstrip("/"))
            if wanted.startswith(".."):
                yield f"{path} reads {wanted}, outside of the package"


def faults_of_archive(name, version, path):
    """What is wrong with an archive."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        yield f"{size} bytes, more than {MOST_BYTES}"
    files, others = read_archive(path)
    for other in others:
        yield f"{other} is a link or a device, not a file"
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        if files.get(licence) != (ROOT / licence).read_bytes():
            yield f"{licence} is missing or is not that of the repository"
    readme = files.get("README.md", b"").decode()
    if not readme.startswith(f"# {name}\n"):
        yield f"README.md is missing or does not begin with `# {name}`"
    for link in re.findall(r"\]\(([^)]+)\)", readme):
        if not link.startswith(("https://", "#")):
            yield f"README.md links to {link}, which leads nowhere outside of the repository"
    yield from faults_of_paths(name, files)


def make(verify):
    """Makes all archives. With `verify` each is compiled, and the registry's own checks run as far as a dry run goes."""
    words = ["--workspace", "--locked", "--allow-dirty"]
    if not verify:
        cargo("package", "--exclude", "warpfold-pages", "--no-verify", *words)
        return
    cargo("package", "--exclude", "warpfold-pages", *words)
    cargo("publish", "--dry-run", "--no-verify", *words)


def test(names, packages):
    """Runs the tests of unpacked archives, which find each other where the registry would be."""
    folder = TARGET / "package" / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    patches = []
    for name, package in packages.items():
        with tarfile.open(TARGET / "package" / f"{name}-{package['version']}.crate") as archive:
            archive.extractall(folder)
        patches += ["--config", f"patch.crates-io.{name}.path={json.dumps(str(folder / (name + '-' + package['version'])))}"]
    for name in names:
        manifest = folder / f"{name}-{packages[name]['version']}" / "Cargo.toml"
        # A workspace of its own: else cargo takes it for a forgotten member of ours.
        with manifest.open("a") as text:
            text.write("\n[workspace]\n")
        print(f"==> the tests of {name}, from its archive", flush=True)
        cargo("test", *patches, "--manifest-path", str(manifest))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-verify", action="store_true", help="do not compile what was packed")
    parser.add_argument("--test", nargs="+", default=[], metavar="NAME", help="run the tests of these packages")
    options = parser.parse_args()
    packages = published()
    unknown = [name for name in options.test if name not in packages]
    if unknown:
        sys.exit(f"error: no package is called {unknown[0]}; there are {', '.join(packages)}")
    if cargo_version() < (1, 90):
        print("skipped: cargo is older than 1.90 and cannot package crates that need each other before they are published")
        return
    for name, package in packages.items():
        (TARGET / "package" / f"{name}-{package['version']}.crate").unlink(missing_ok=True)
    make(not options.no_verify)
    wrong = 0
    for name, package in packages.items():
        archive = TARGET / "package" / f"{name}-{package['version']}.crate"
        faults = [*faults_of_manifest(package), *faults_of_archive(name, package["version"], archive)]
        print(f"{name}: {archive.stat().st_size} bytes, {'ready' if not faults else 'not ready'}")
        for fault in faults:
            print(f"  {fault}")
        wrong += len(faults)
    if wrong:
        sys.exit(f"error: {wrong} faults in packages")
    test(options.test, packages)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {' '.join(map(str, error.cmd[:3]))} failed with status {error.returncode}")
