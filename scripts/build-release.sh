#!/bin/bash
# Builds the sbx that starts fastest on this machine, and prints its path as the last line of standard output.
#
# Usage: scripts/build-release.sh [auto|rustup|debian|host]
#
# Every command that sbx starts also pays for the start of sbx. Most of that time goes to the dynamic loader and the
# initialisation of glibc. So the script builds a static program for musl, without position-independent code, if it can:
#
#   rustup    with the musl target of the toolchain in use, which rustup has or can fetch
#   debian    with Debian's rustc-web, cargo-web, rust-web-src and musl-tools, which also build the standard library
#   host      with the default target of cargo: works everywhere, starts later
#   auto      the default: the first of these that works
#
#   SBX_ARCH=NAME            builds for another architecture (aarch64) with a cross compiler
#   SBX_KEEP_SYMBOLS=1       keeps the symbols, for debuggers and profilers
#   SBX_INSTALL_PACKAGES=1   lets root install missing packages
#   SBX_DIST_DIR=DIR         the place of the products (target/dist), apart from those of `cargo build`
set -euo pipefail

route=${1:-auto}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dist=${SBX_DIST_DIR:-${CARGO_TARGET_DIR:-target}/dist}
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
arch=${SBX_ARCH:-$(uname -m)}
target=$arch-unknown-linux-musl
static_flags="-C target-feature=+crt-static -C relocation-model=static -C panic=abort"
if [ "${SBX_KEEP_SYMBOLS:-}" = 1 ]; then
    export CARGO_PROFILE_RELEASE_STRIP=none
fi

say() { printf 'build-release: %s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

# Builds only the launcher. The flags are added to RUSTFLAGS; the encoded variable is unset because it would override
# them.
build() {
    local cargo=$1 flags=$2
    shift 2
    env -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_TARGET RUSTFLAGS="$flags${RUSTFLAGS:+ $RUSTFLAGS}" \
        CARGO_TARGET_DIR="$dist" "$cargo" build --release --locked --package sbx --bin sbx "$@" >&2
}

# Whether the build is for another architecture. Then a cross compiler links, unless another linker is set.
is_foreign() { [ "$arch" != "$(uname -m)" ]; }

if is_foreign; then
    for libc in GNU MUSL; do
        linker=CARGO_TARGET_${arch^^}_UNKNOWN_LINUX_${libc}_LINKER
        export "$linker=${!linker:-$arch-linux-gnu-gcc}"
    done
fi

# A static program is linked with the functions of a start next to each other.
is_foreign || static_flags+=" -C linker=$PWD/scripts/link-in-order"

# Whether the program starts on this machine: a program that was linked may still fail to start.
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

# On musl, std links libunwind, which Debian does not have for musl. The unwinder of libgcc works instead, except for
# one glibc function that finds unwind tables. If that function fails, the unwinder reads the program headers instead.
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

# RUSTC_BOOTSTRAP lets a stable compiler build its standard library. The sources here use no unstable feature.
build_by_debian() {
    say "static $target, by Debian's compiler with a standard library built here"
    make_unwinder "$dist/unwind" || fail "cannot make an unwinder from libgcc_eh.a: is gcc installed?"
    export SBX_LINKER=musl-gcc RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
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

# Tries one route. If it should work but does not, a message says so and the next route is tried. `set -e` is off in
# functions that are called in a condition, so each step handles its failure. The subshell keeps the exports of a
# route from the next one.
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
