# Each target runs the command that one would type. Only install and uninstall do work of their own.

CARGO  ?= cargo
PREFIX ?= /usr/local
BINDIR  = $(DESTDIR)$(PREFIX)/bin
LIBDIR  = $(DESTDIR)$(PREFIX)/lib/sbx
SHARE   = $(DESTDIR)$(PREFIX)/share
MANDIR  = $(SHARE)/man/man1
# Each shell looks for completions in these places by default.
BASH_COMPLETION = $(SHARE)/bash-completion/completions/sbx
ZSH_COMPLETION  = $(SHARE)/zsh/site-functions/_sbx
FISH_COMPLETION = $(SHARE)/fish/vendor_completions.d/sbx.fish
# The names by which sbx is a shell: docs/shell.md.
SHELLS = sbx-shell sbx-bash sbx-sh sbx-zsh

.PHONY: help build install uninstall dist lint test test-escapes test-hosts test-compat test-explain test-faults
.PHONY: test-mutants test-projects test-mcp test-agents coverage
.PHONY: vm-test check-aarch64 fuzz fuzz-runs bench bench-peers

help:
	@echo 'make build          builds the release that starts fastest on this machine'
	@echo 'make install        installs sbx, libsandbox.so, manual and completions below PREFIX ($(PREFIX))'
	@echo 'make uninstall      removes the installed files'
	@echo 'make dist           packs an archive of them for distribution, in target/dist'
	@echo
	@echo 'make lint           checks formatting, clippy, documentation and stale mutants; warnings are errors'
	@echo 'make test           runs all tests; lists the missing tools first'
	@echo 'make test-escapes   tries published sandbox escapes, each without sbx and in it'
	@echo 'make test-hosts     tries published ways around rules about hosts, in an internet of its own'
	@echo 'make test-compat    compares everyday commands in sbx with runs without it'
	@echo 'make test-explain   examines what sbx says of hundreds of known refusals; ONLY=WORDS: these cases'
	@echo 'make test-faults    makes each system call of a start fail'
	@echo 'make test-mutants   removes protecting lines one by one; a test must fail each time'
	@echo 'make test-projects  builds and tests real projects from the registries, in sbx and without it'
	@echo 'make test-mcp       drives sbx mcp with clients of the protocol from the registries'
	@echo 'make test-agents    has real agents from the npm registry run commands, in sbx and with its hooks'
	@echo 'make coverage       measures which lines of policy and launcher the tests run'
	@echo 'make vm-test        runs the kernel-dependent tests on older kernels, emulated; ARCH=aarch64: on arm64'
	@echo 'make check-aarch64  compiles everything for arm64 and runs clippy on it'
	@echo 'make fuzz-runs      runs random sequences of commands in repositories, and looks what git executes afterwards'
	@echo 'make fuzz           fuzzes the properties of fuzz/properties; SECONDS=N for each target'
	@echo 'make bench          measures start-up, costs per system call, runs per second, memory and network'
	@echo 'make bench-peers    the same and everyday commands, under every other sandbox that is installed'
	@echo
	@echo 'DESTDIR=DIR with install or uninstall: a directory in front of PREFIX'
	@echo 'UPDATE=1 with test-escapes, test-hosts, test-compat, test-explain, test-faults, test-projects, test-agents,'
	@echo '  coverage or bench-peers: writes the tables in docs'

build:
	scripts/build-release.sh

test:
	tests/check-tools
	$(CARGO) test --workspace

# ESCAPES=NAME...: tries only these attempts or classes.
test-escapes:
	$(CARGO) build -p sbx
	$(CARGO) run -p sbx-tests --bin escapes -- $(if $(UPDATE),--update) $(ESCAPES)

test-hosts:
	$(CARGO) build -p sbx
	SBX_TEST_NO_SKIP=1 SBX_TEST_UPDATE_PAGE=$(UPDATE) $(CARGO) test -p sbx-tests --test suite -- hosts::

# FAULTS: flags of the program: --every, --scenario NAME, --call NAME, -v.
test-faults:
	$(CARGO) build -p sbx
	$(CARGO) run -p sbx-tests --bin faults -- $(if $(UPDATE),--update) $(FAULTS)

# SBX_COMPAT_FLAGS: flags for every run of sbx.
test-compat:
	tests/check-tools compat/needs
	$(CARGO) build -p sbx
	$(CARGO) run -p sbx-tests --bin compat -- $(if $(UPDATE),--update docs/internals/testing/compatibility.md)

# SBX=FILE: another program than the debug build.
test-explain:
	$(CARGO) build -p sbx
	tests/explain.py $(if $(UPDATE),--update) $(if $(ONLY),--only '$(ONLY)')

test-mutants:
	tests/mutants.py

# PROJECTS=NAME...: only these. ROOT=1: as root too. Fetches sources and packages, and takes half an hour.
test-projects:
	$(CARGO) build -p sbx
	tests/projects.py $(if $(ROOT),--root) $(if $(UPDATE),--update) $(PROJECTS)

# Fetches the clients into target/mcp-clients.
test-mcp:
	$(CARGO) build -p sbx
	tests/mcp_clients.py

# AGENTS=NAME...: only these. Fetches the agents; they talk to a fake model on loopback.
test-agents:
	$(CARGO) build -p sbx
	tests/agents/run.py $(if $(UPDATE),--update) $(AGENTS)

# Needs the llvm-tools of rustup. If they are missing, the script says how to get them.
coverage:
	tests/check-tools
	scripts/coverage/run $(if $(UPDATE),--update)

# ARCH=aarch64: in emulated machines of that architecture.
vm-test:
	$(if $(ARCH),SBX_ARCH='$(ARCH)') tests/vm/run

check-aarch64:
	scripts/check-aarch64.sh

# FUZZ=TARGET...: fuzzes only these. Needs a nightly toolchain and cargo-fuzz.
fuzz:
	SECONDS_EACH=$(SECONDS) fuzz/run $(FUZZ)

# AS=UID: as that user. SECONDS=N: how long.
fuzz-runs:
	$(CARGO) build -p sbx
	tests/fuzz_runs.py --seconds $(or $(SECONDS),600) $(if $(AS),--as $(AS))

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
	$(CARGO) run --release -p sbx-bench -- network
	$(CARGO) run --release -p sbx-bench -- morning

# Root also measures as an ordinary user, first. UNDER='chrt -f 10' keeps the other load of a busy machine out of the
# figures.
PEERS = $(UNDER) $(CARGO) run --release -p sbx-bench -- peers \
	$(if $(UPDATE),--update docs/internals/performance.md) $(BENCH_FLAGS)
bench-peers:
	scripts/build-release.sh
	$(CARGO) build --release -p sbx-bench
	[ "$$(id -u)" != 0 ] || $(PEERS) --as 65534
	$(PEERS)

# SBX=FILE: installs this program instead of building one.
# The installed program writes the library, the manual and the completions, so they always match it.
install:
	set -e; sbx='$(SBX)'; \
	[ -n "$$sbx" ] || sbx=$$(scripts/build-release.sh | tail -n 1); \
	install -d '$(BINDIR)' '$(LIBDIR)'; \
	install -m 755 "$$sbx" '$(BINDIR)/sbx'; \
	for name in $(SHELLS); do ln -sf sbx '$(BINDIR)'/"$$name"; done; \
	'$(BINDIR)/sbx' shim >'$(LIBDIR)/libsandbox.so'; \
	chmod 755 '$(LIBDIR)/libsandbox.so'; \
	umask 022; \
	install -d '$(MANDIR)' $(foreach file,$(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION),'$(dir $(file))'); \
	'$(BINDIR)/sbx' man '$(MANDIR)'; \
	'$(BINDIR)/sbx' completions bash >'$(BASH_COMPLETION)'; \
	'$(BINDIR)/sbx' completions zsh >'$(ZSH_COMPLETION)'; \
	'$(BINDIR)/sbx' completions fish >'$(FISH_COMPLETION)'

# The installed program knows the names of its manual pages.
uninstall:
	set -e; [ ! -x '$(BINDIR)/sbx' ] || { \
		pages=$$(mktemp -d); \
		'$(BINDIR)/sbx' man "$$pages"; \
		(cd "$$pages" && for page in *; do rm -f '$(abspath $(MANDIR))/'"$$page"; done); \
		rm -r "$$pages"; \
	}
	for name in $(SHELLS); do rm -f '$(BINDIR)'/"$$name"; done
	rm -f '$(BINDIR)/sbx' '$(LIBDIR)/libsandbox.so' \
		'$(BASH_COMPLETION)' '$(ZSH_COMPLETION)' '$(FISH_COMPLETION)'
	rmdir '$(LIBDIR)' 2>/dev/null || true

dist:
	scripts/dist.sh
