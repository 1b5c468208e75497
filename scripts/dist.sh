#!/bin/bash
# Packs the files of `make install` and the documents into an archive in target/dist, and prints its path
# as the last line. The same sources and tools give the same bytes: names are sorted, owners and times are fixed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
dist=${SBX_DIST_DIR:-${CARGO_TARGET_DIR:-target}/dist}
sbx=$(scripts/build-release.sh | tail -n 1)
[ -x "$sbx" ] || { echo "dist: the build has left no sbx to pack" >&2; exit 1; }

version=$("$sbx" --version | awk '{ print $2; exit }')
name=sbx-$version-$(uname -m)-linux
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
install -d "$stage/$name"
install -m 755 "$sbx" "$stage/$name/sbx"
# The names by which sbx is a shell: docs/shell.md.
for shell in sbx-shell sbx-bash sbx-sh sbx-zsh; do ln -s sbx "$stage/$name/$shell"; done
"$sbx" shim -o "$stage/$name/libsandbox.so"
chmod 755 "$stage/$name/libsandbox.so"
mkdir "$stage/$name/man" "$stage/$name/completions"
"$sbx" man "$stage/$name/man"
for shell in bash zsh fish; do "$sbx" completions "$shell" >"$stage/$name/completions/sbx.$shell"; done
for document in README.md CHANGELOG.md SECURITY.md LICENSE* docs examples; do
    if [ -e "$document" ]; then cp -r "$document" "$stage/$name/"; fi
done

epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
archive=$dist/$name.tar.gz
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=go=u-w --mtime="@$epoch" \
    --directory "$stage" "$name" | gzip -n >"$archive"
echo "$archive"
