# Functions for the `fetch` lines of the projects. Each unpacks one source into the current directory, which is empty.

# Root would give the files the owners that an archive names.
TAR_OPTIONS=--no-same-owner
export TAR_OPTIONS

# sdist NAME VERSION: the source distribution of a Python package.
sdist() {
    python3 -m venv "$HOME/fetch"
    "$HOME/fetch/bin/pip" download -q --no-deps --no-binary "$1" -d "$HOME" "$1==$2"
    tar -xf "$HOME"/*.tar.gz --strip-components=1
}

# crate NAME VERSION: the source of a Rust crate.
crate() {
    cargo init -q --vcs none "$HOME/fetch"
    (cd "$HOME/fetch" && cargo add -q "$1@=$2" && cargo fetch -q)
    cp -a "$HOME"/.cargo/registry/src/*/"$1-$2"/. .
    rm -f .cargo-ok .cargo_vcs_info.json
}

# package NAME VERSION: what a package of npm holds.
package() {
    tar -xf "$(npm pack --silent --pack-destination "$HOME" "$1@$2" | sed "s|^|$HOME/|")" --strip-components=1
}

# debian NAME [patched]: the upstream source of a Debian package; `patched`: with Debian's changes. The lists of sources
# are the machine's, asked for sources as well.
debian() {
    lists=$HOME/apt
    mkdir -p "$lists/parts" "$lists/lists/partial" "$lists/cache/archives/partial"
    [ ! -f /etc/apt/sources.list ] || sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$lists/sources.list"
    for file in /etc/apt/sources.list.d/debian.sources; do
        [ ! -f "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$lists/parts/debian.sources"
    done
    apt="-qq -o Dir::Etc::SourceList=$lists/sources.list -o Dir::Etc::SourceParts=$lists/parts
        -o Dir::State::Lists=$lists/lists -o Dir::Cache=$lists/cache -o APT::Sandbox::User=root"
    touch "$lists/sources.list"
    apt-get $apt update
    if [ "${2-}" = patched ]; then
        (cd "$HOME" && apt-get $apt source "$1")
        cp -a "$HOME/$1"-*/. .
    else
        (cd "$HOME" && apt-get $apt --download-only source "$1")
        tar -xf "$HOME"/*.orig.tar.* --strip-components=1
    fi
}
