#!/bin/bash
# Builds the sbx that starts fastest on this machine, and prints its path as the last line of standard output.
# SBX_ARCH=NAME: for another architecture (aarch64), by a cross compiler.
#
# A launcher pays for its own start with every command it starts. Most of that is the dynamic loader and glibc's
# initialisation, so a static program without position-independent code, on musl, is built where that can be done:
#
#   rustup    a musl target of the toolchain in use, which rustup has or can fetch
#   debian    Debian's rustc-web, cargo-web, rust-web-src and musl-tools, which build the standard library too
#   host      cargo's own target: works everywhere, starts later
#
# Usage: scripts/build-release.sh [auto|rustup|debian|host]
#
# SBX_KEEP_SYMBOLS=1: with its symbols, for debuggers and profilers.
#
# `auto`, the default, takes the first of these that works. Packages are installed only by root and only with
# SBX_INSTALL_PACKAGES=1. Products are kept apart from `cargo build`'s, in SBX_DIST_DIR (target/dist).
set -euo pipefail

route=${1:-auto}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dist=${SBX_DIST_DIR:-${CARGO_TARGET_DIR:-target}/dist}
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
arch=${SBX_ARCH:-$(uname -m)}
target=$arch-unknown-linux-musl
static_flags="-C target-feature=+crt-static -C relocation-model=static -C panic=abort"
# What the start of a run calls stands together, so that it takes few pages (scripts/start-order.py). cargo does not
# see that the file changes, so its checksum stands beside it.
order="-C link-arg=-Wl,-T,scripts/start.ld -C metadata=$(cksum <scripts/start.ld | tr ' ' -)"
static_flags+=" $order"
if [ "${SBX_KEEP_SYMBOLS:-}" = 1 ]; then
    export CARGO_PROFILE_RELEASE_STRIP=none
fi

say() { printf 'build-release: %s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

# Runs cargo for the launcher alone. RUSTFLAGS is added to, not replaced; the encoded form would outrank it.
build() {
    local cargo=$1 flags=$2
    shift 2
    env -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_TARGET RUSTFLAGS="$flags${RUSTFLAGS:+ $RUSTFLAGS}" \
        CARGO_TARGET_DIR="$dist" "$cargo" build --release --locked --package sbx --bin sbx "$@" >&2
}

# Whether it is for another architecture than this machine's. Then a cross compiler links, if no other is named.
is_foreign() { [ "$arch" != "$(uname -m)" ]; }

if is_foreign; then
    for libc in GNU MUSL; do
        linker=CARGO_TARGET_${arch^^}_UNKNOWN_LINUX_${libc}_LINKER
        export "$linker=${!linker:-$arch-linux-gnu-gcc}"
    done
fi

# Whether the program does what it is for on this machine; a build that links can still fail to start.
starts() { [ -x "$1" ] && { is_foreign || "$1" --version >/dev/null; }; }

# --- rustup -----------------------------------------------------------------------------------------------------

rustup_has_target() {
    command -v cargo >/dev/null && command -v rustc >/dev/null || return 1
    local library
    library=$(rustc --print target-libdir --target "$target" 2>/dev/null) || return 1
    compgen -G "$library/libstd-*.rlib" >/dev/null
}

rustup_can_build() {
    rustup_has_target && return
    command -v rustup >/dev/null || return 1
    say "asking rustup for $target"
    timeout 300 rustup target add "$target" >&2 && rustup_has_target
}

build_by_rustup() {
    say "static $target, by the toolchain in use"
    build cargo "$static_flags" --target "$target" || return 1
    product=$dist/$target/release/sbx
}

# --- debian -----------------------------------------------------------------------------------------------------

debian_packages=(rustc-web cargo-web rust-web-src musl-tools)

debian_has_packages() {
    command -v dpkg-query >/dev/null || return 1
    local package
    for package in "${debian_packages[@]}"; do
        dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || return 1
    done
}

debian_can_build() {
    is_foreign && return 1
    debian_has_packages && return
    [ "${SBX_INSTALL_PACKAGES:-}" = 1 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    say "installing ${debian_packages[*]}"
    apt-get update -qq >&2 || return 1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${debian_packages[@]}" >&2
}

# std names libunwind on musl, and Debian has none for it. libgcc's unwinder does, but for one glibc function: it
# asks where an address's unwind table is, and on a refusal goes through the program headers instead.
make_unwinder() {
    local directory=$1 libgcc
    libgcc=$(gcc -print-file-name=libgcc_eh.a) || return 1
    [ -f "$libgcc" ] || return 1
    mkdir -p "$directory" || return 1
    echo 'int _dl_find_object(void *address, void *result) { (void)address; (void)result; return -1; }' |
        musl-gcc -O2 -x c -c - -o "$directory/find_object.o" &&
        cp "$libgcc" "$directory/libunwind.a" &&
        ar rs "$directory/libunwind.a" "$directory/find_object.o" 2>/dev/null
}

# RUSTC_BOOTSTRAP lets this released compiler build its own standard library; no source here uses what it unlocks.
build_by_debian() {
    say "static $target, by Debian's compiler with a standard library built here"
    make_unwinder "$dist/unwind" || fail "cannot make an unwinder from libgcc_eh.a: is gcc installed?"
    local linker=CARGO_TARGET_${target^^}_LINKER
    export "${linker//-/_}=musl-gcc" RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
    build /usr/bin/cargo "$static_flags -C link-self-contained=no -L native=$dist/unwind" \
        -Z build-std=std,panic_abort --target "$target" || return 1
    product=$dist/$target/release/sbx
}

# --- host -------------------------------------------------------------------------------------------------------

build_by_host() {
    command -v cargo >/dev/null || fail "cargo is not installed"
    say "dynamically linked: sbx will start about half a millisecond later than a static one"
    if is_foreign; then
        build cargo "" --target "$arch-unknown-linux-gnu" || return 1
        product=$dist/$arch-unknown-linux-gnu/release/sbx
    else
        build cargo "" || return 1
        product=$dist/release/sbx
    fi
}

# A route that should work and does not is left with a word; the next one may still. (`set -e` is off in functions
# that stand in a condition, so each step says itself what follows from its failure.) The subshell keeps what one
# route exports from the next.
try() {
    local name=$1
    "${name}_can_build" || return 1
    if (
        "build_by_$name" || exit 1
        starts "$product" || fail "'$product' does not start"
        printf '%s\n' "$product" >"$dist/product"
    ); then
        product=$(cat "$dist/product")
        return
    fi
    say "route '$name' failed"
    return 1
}

host_can_build() { true; }

case $route in
auto) try rustup || try debian || { say "no musl target here"; try host; } || fail "sbx cannot be built" ;;
rustup | debian | host) try "$route" || fail "route '$route' cannot build sbx here" ;;
*) fail "unknown route '$route': auto, rustup, debian or host" ;;
esac

say "$(stat -c %s "$product") bytes"
printf '%s\n' "$product"
