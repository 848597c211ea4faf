#!/bin/sh
# Installs the command from a release: fetches the archive for this machine, compares its SHA-256, and copies the command.
#
#     tools/install.sh VERSION [DIR]     into DIR, ~/.local/bin unless it is named
#
# WARPFOLD_RELEASES names another place than the repository's releases: an address with vVERSION/ARCHIVE below it.
# Nothing is changed unless all of it was fetched and is whole.
set -eu

fail() {
    echo "error: $1" >&2
    [ -z "${2:-}" ] || echo "hint: $2" >&2
    exit 1
}

[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
version=${1#v}
to=${2:-$HOME/.local/bin}
releases=${WARPFOLD_RELEASES:-https://github.com/warpfold/warpfold/releases/download}

case "$(uname -s) $(uname -m)" in
    "Linux x86_64") target=x86_64-unknown-linux-gnu ;;
    "Linux aarch64") target=aarch64-unknown-linux-gnu ;;
    "Darwin arm64") target=aarch64-apple-darwin ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m)" "cargo install --path crates/cli compiles it" ;;
esac

name=warpfold-$version-$target
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for file in "$name.tar.gz" "$name.tar.gz.sha256"; do
    curl --fail --silent --show-error --location --output "$scratch/$file" "$releases/v$version/$file" ||
        fail "cannot fetch $releases/v$version/$file" "is there a release $version?"
done
cd "$scratch"
if command -v sha256sum >/dev/null 2>&1; then sum=sha256sum; else sum="shasum -a 256"; fi
$sum --check --status "$name.tar.gz.sha256" || fail "$name.tar.gz is not what its SHA-256 says" "fetch it again"
tar -xzf "$name.tar.gz"
mkdir -p "$to"
# A command that runs cannot be written over, but its name can be given to another file.
cp "$name/warpfold" "$to/.warpfold.new"
chmod 755 "$to/.warpfold.new"
mv -f "$to/.warpfold.new" "$to/warpfold"
echo "$to/warpfold"
case ":$PATH:" in
    *":$to:"*) ;;
    *) echo "note: $to is not in PATH" >&2 ;;
esac
