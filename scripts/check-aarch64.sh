#!/bin/bash
# Compiles everything for arm64, including the tests, and runs clippy on it; warnings are errors. It does
# not run the tests: `make vm-test ARCH=aarch64` does.
#
# Usage: scripts/check-aarch64.sh [--brief]
#
#   --brief                  what is installed and nothing else, without tests, and for musl, as releases are built: a
#                            few types of C are others there. Prints a line and succeeds if a tool is missing
#   SBX_INSTALL_PACKAGES=1   fetches missing tools with rustup and apt
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
brief=no
libc=gnu
[ "${1:-}" != --brief ] || { brief=yes && libc=musl; }
target=aarch64-unknown-linux-$libc
linker=${CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER:-aarch64-linux-gnu-gcc}

has_library() { compgen -G "$(rustc --print target-libdir --target $target)/libstd-*.rlib" >/dev/null; }
has_linker() { command -v "$linker" >/dev/null; }
may_install() { [ "${SBX_INSTALL_PACKAGES:-}" = 1 ]; }

missing() {
    echo "check-aarch64: not checked, missing: $*" >&2
    [ "$brief" = yes ]
    exit
}

if ! has_library && may_install && command -v rustup >/dev/null; then
    timeout 300 rustup target add $target >&2 || true
fi
has_library || missing "the standard library for $target   (rustup target add $target)"
# A linker is needed because the build script of the launcher links libsandbox.so.
install_linker() {
    apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            gcc-aarch64-linux-gnu libc6-dev-arm64-cross </dev/null
}
if ! has_linker && may_install && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    install_linker >&2 || true
fi
has_linker || missing "$linker   (apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$linker CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=$linker
what=(--workspace --all-targets)
[ "$brief" = no ] || what=(-p sbx -p sbx-client)
cargo clippy "${what[@]}" --target $target -- -D warnings
