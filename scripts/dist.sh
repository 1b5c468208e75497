#!/bin/bash
# Packs what `make install` would install, with the documents, into target/dist, and prints the archive's path as
# the last line. The same sources and the same tools give the same bytes: names are sorted, owners and times fixed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
dist=${SBX_DIST_DIR:-${CARGO_TARGET_DIR:-target}/dist}
sbx=$(scripts/build-release.sh | tail -n 1)
[ -x "$sbx" ] || { echo "dist: there is no sbx to pack" >&2; exit 1; }

version=$("$sbx" --version | awk '{ print $2; exit }')
name=sbx-$version-$(uname -m)-linux
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
install -d "$stage/$name"
install -m 755 "$sbx" "$stage/$name/sbx"
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
