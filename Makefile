# Thin: each target is the command that one would type. Only install and uninstall have work of their own.

CARGO  ?= cargo
PREFIX ?= /usr/local
BINDIR  = $(DESTDIR)$(PREFIX)/bin
LIBDIR  = $(DESTDIR)$(PREFIX)/lib/sbx
SHARE   = $(DESTDIR)$(PREFIX)/share
MANDIR  = $(SHARE)/man/man1
# Where each shell looks for completions by itself.
BASH_COMPLETION = $(SHARE)/bash-completion/completions/sbx
ZSH_COMPLETION  = $(SHARE)/zsh/site-functions/_sbx
FISH_COMPLETION = $(SHARE)/fish/vendor_completions.d/sbx.fish

.PHONY: help build test test-compat test-escapes test-mutants vm-test lint check-aarch64 bench install uninstall dist fuzz test-faults bench-peers coverage

help:
	@echo 'make build      the release build that starts fastest on this machine'
	@echo 'make test       every test; says which tools it misses'
	@echo 'make test-escapes  published ways out of a sandbox, each tried without sbx and in it; UPDATE=1 writes the tables in docs'
	@echo 'make test-compat  commands of every day, compared with runs without sbx; UPDATE=1 writes the tables of docs/compatibility.md'
	@echo 'make test-faults  makes each system call of a start fail; UPDATE=1 writes the tables of docs/faults.md'
	@echo 'make test-mutants  takes protecting lines out one by one; a test has to notice each'
	@echo 'make coverage   which lines of policy and launcher the tests run; UPDATE=1 writes the tables of docs/coverage.md'
	@echo 'make vm-test    the tests that depend on the kernel, on older kernels, in emulated machines'
	@echo '                ARCH=aarch64: on arm64, emulated on whatever this machine is'
	@echo 'make check-aarch64  compiles everything for arm64, with clippy'
	@echo 'make fuzz       what has to hold whatever is read, with bytes that a fuzzer makes; SECONDS=N for each target'
	@echo 'make lint       formatting, clippy and documentation, warnings being errors; stale mutants'
	@echo 'make bench      start-up, per-call costs, runs a second and memory, against bare exec and other sandboxes'
	@echo 'make bench-peers  the same and everyday commands under every other sandbox that is installed; UPDATE=1 writes the tables of docs/performance.md'
	@echo 'make install    sbx, libsandbox.so, manual and completions below PREFIX ($(PREFIX)); DESTDIR is honoured'
	@echo 'make uninstall  removes what install has put there'
	@echo 'make dist       an archive for others, in target/dist'

build:
	scripts/build-release.sh

test:
	tests/check-tools
	$(CARGO) build --workspace
	$(CARGO) test --workspace

# ESCAPES=NAME... tries only those attempts or classes.
test-escapes:
	$(CARGO) build -p sbx
	$(CARGO) run -p sbx-tests --bin escapes -- $(if $(UPDATE),--update) $(ESCAPES)

# FAULTS holds flags for it: --every, --scenario NAME, --call NAME, -v.
test-faults:
	$(CARGO) build -p sbx
	$(CARGO) run -p sbx-tests --bin faults -- $(if $(UPDATE),--update) $(FAULTS)

# SBX_COMPAT_FLAGS holds flags for every run of sbx.
test-compat:
	tests/check-tools compat/needs
	$(CARGO) build -p sbx
	$(CARGO) run -p sbx-tests --bin compat -- $(if $(UPDATE),--update docs/compatibility.md)

test-mutants:
	tests/mutants.py

# Needs rustup's llvm-tools; says how to get them.
coverage:
	tests/check-tools
	scripts/coverage/run $(if $(UPDATE),--update)

# ARCH=aarch64: in machines of that architecture.
vm-test:
	$(if $(ARCH),SBX_ARCH='$(ARCH)') tests/vm/run

check-aarch64:
	scripts/check-aarch64.sh

# FUZZ=TARGET... runs only those. Needs a nightly toolchain and cargo-fuzz.
fuzz:
	SECONDS_EACH=$(SECONDS) fuzz/run $(FUZZ)

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps
	tests/mutants.py --stale

bench:
	scripts/build-release.sh
	$(CARGO) run --release -p sbx-bench -- startup
	$(CARGO) run --release -p sbx-bench -- calls
	$(CARGO) run --release -p sbx-bench -- load
	$(CARGO) run --release -p sbx-bench -- memory

# Root measures as an ordinary user first. UNDER='chrt -f 10' keeps what else a busy machine has to do out of the figures.
PEERS = $(UNDER) $(CARGO) run --release -p sbx-bench -- peers $(if $(UPDATE),--update docs/performance.md) $(BENCH_FLAGS)
bench-peers:
	scripts/build-release.sh
	$(CARGO) build --release -p sbx-bench
	[ "$$(id -u)" != 0 ] || $(PEERS) --as 65534
	$(PEERS)

# SBX=FILE installs that program instead of building one.
# Library, manual and completions are written by the program that is installed, so they cannot differ from it.
install:
	set -e; sbx='$(SBX)'; \
	[ -n "$$sbx" ] || sbx=$$(scripts/build-release.sh | tail -n 1); \
	install -d '$(BINDIR)' '$(LIBDIR)'; \
	install -m 755 "$$sbx" '$(BINDIR)/sbx'; \
	'$(BINDIR)/sbx' shim >'$(LIBDIR)/libsandbox.so'; \
	chmod 755 '$(LIBDIR)/libsandbox.so'; \
	umask 022; \
	install -d '$(MANDIR)' $(foreach file,$(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION),'$(dir $(file))'); \
	'$(BINDIR)/sbx' man '$(MANDIR)'; \
	'$(BINDIR)/sbx' completions bash >'$(BASH_COMPLETION)'; \
	'$(BINDIR)/sbx' completions zsh >'$(ZSH_COMPLETION)'; \
	'$(BINDIR)/sbx' completions fish >'$(FISH_COMPLETION)'

# Which pages of the manual are ours the program knows.
uninstall:
	set -e; [ ! -x '$(BINDIR)/sbx' ] || { \
		pages=$$(mktemp -d); \
		'$(BINDIR)/sbx' man "$$pages"; \
		(cd "$$pages" && for page in *; do rm -f '$(abspath $(MANDIR))/'"$$page"; done); \
		rm -r "$$pages"; \
	}
	rm -f '$(BINDIR)/sbx' '$(LIBDIR)/libsandbox.so' \
		'$(BASH_COMPLETION)' '$(ZSH_COMPLETION)' '$(FISH_COMPLETION)'
	rmdir '$(LIBDIR)' 2>/dev/null || true

dist:
	scripts/dist.sh
