//! What the built-in profiles copy of files of settings: tokens wherever a tool may have put one, and none in the copy.

use crate::built_in_profile;
use sbx::plan::settings_copy::filtered;

/// The copy of a file below the home, as the profile `workspace` makes it.
fn copied(path: &str, text: &str) -> String {
    let profile = built_in_profile("workspace");
    let wanted = format!("${{HOME}}/{path}");
    let copy = profile.home.copies.iter().find(|copy| copy.path.to_string() == wanted).unwrap();
    String::from_utf8(filtered(copy.format, &copy.keep, text.as_bytes()).unwrap()).unwrap()
}

/// Each of these lines is kept, and nothing with a secret is.
#[track_caller]
fn holds(path: &str, text: &str, lines: &[&str]) {
    let copy = copied(path, text);
    assert!(!copy.contains("hunter2"), "{copy}");
    let held: Vec<&str> = copy.lines().map(str::trim).filter(|line| !line.starts_with('[')).collect();
    assert_eq!(held, lines, "{path}");
}

#[test]
fn settings_of_git() {
    let text = r#"
# hunter2
[user]
	name = Some Body
	email = some@example.org
	signingKey = hunter2
[commit]
	gpgSign = true
	template = ~/.gitmessage
	verbose = true
[gpg]
	program = hunter2
[core]
	excludesFile = ~/.config/git/ignore ; hunter2
	sshCommand = ssh -i ~/.ssh/hunter2
	hooksPath = ~/hunter2
	pager = hunter2
[credential]
	helper = store --file ~/hunter2
[credential "https://me:hunter2@example.org"]
	username = hunter2
[url "https://me:hunter2@example.org/"]
	insteadOf = https://example.org/
[http]
	extraHeader = Authorization: Basic hunter2
	proxy = http://me:hunter2@proxy/
[http "https://example.org/"]
	sslKey = hunter2
[sendemail]
	smtpPass = hunter2
[remote "x"]
	url = https://hunter2@example.org/
[include]
	path = ~/hunter2
[includeIf "gitdir:~/work/"]
	path = ~/hunter2
[alias]
	lg = log --graph --format='%h %an: %s' --all
	leak = !curl -u me:hunter2 https://example.org
	push-it = push https://me:hunter2@example.org/x
	tok = "config x.token hunter2"
[github]
	user = me
	token = hunter2
[filter "lfs"]
	clean = git-lfs clean -- %f
	required = true
[filter "crypt"]
	clean = openssl enc -k hunter2
[diff]
	external = hunter2
	colorMoved = zebra
[diff "lock"]
	textconv = hunter2
	xfuncname = "^(.*)$"
[push]
	pushOption = hunter2
	autoSetupRemote
[safe]
	directory = *
"#;
    let lines = [
        r#"name = "Some Body""#,
        r#"email = "some@example.org""#,
        r#"verbose = "true""#,
        r#"excludesfile = "~/.config/git/ignore""#,
        r#"lg = "log --graph --format='%h %an: %s' --all""#,
        r#"clean = "git-lfs clean -- %f""#,
        r#"required = "true""#,
        r#"colormoved = "zebra""#,
        r#"xfuncname = "^(.*)$""#,
        "autosetupremote",
        r#"directory = "*""#,
        // Of the filter whose command is not copied.
        r#"required = "true""#,
    ];
    holds(".gitconfig", text, &lines);
    holds(".config/git/config", text, &lines);
}

#[test]
fn settings_of_npm_and_go() {
    let text = "; hunter2
registry=https://registry.example/
@me:registry=https://npm.example/ ; hunter2
@you:registry=https://me:hunter2@npm.example/
//npm.example/:_authToken=hunter2
//npm.example/:_password=hunter2
//npm.example/:username=hunter2
//npm.example/:certfile=/hunter2
//npm.example/:keyfile=/hunter2
_auth=hunter2
_authToken = hunter2
email=hunter2@example.org
otp=hunter2
key=\"-----BEGIN PRIVATE KEY-----\\nhunter2\\n-----END PRIVATE KEY-----\"
https-proxy=http://me:hunter2@proxy.example:3128
proxy=http://proxy.example:3128
node-options=--require /hunter2.js
save-exact=true
init-author-name=\"Some Body\"
script-shell=${HUNTER2}
[section]
registry=https://hunter2/
";
    let lines = [
        "registry=https://registry.example/",
        "@me:registry=https://npm.example/",
        "proxy=http://proxy.example:3128",
        "save-exact=true",
        "init-author-name=\"Some Body\"",
    ];
    holds(".npmrc", text, &lines);
    let text = "GOPROXY=https://me:hunter2@proxy.example,direct\nGOPRIVATE=example.org/*\nGOFLAGS=-mod=mod\n\
        GOAUTH=netrc hunter2\nGOSUMDB=off\n";
    holds(".config/go/env", text, &["GOPRIVATE=example.org/*", "GOFLAGS=-mod=mod", "GOSUMDB=off"]);
}

#[test]
fn settings_of_pip() {
    let text = "# hunter2
[global]
index-url = https://me:hunter2@pypi.example/simple
extra-index-url =
    https://a.example/simple
    https://b.example/simple
trusted-host = a.example
timeout = 60
    password = hunter2
retries: 3
client-cert = /hunter2
proxy = me:hunter2@proxy.example:3128
[install]
find-links = https://host/?key=hunter2
require-virtualenv = true
[distutils]
password = hunter2
";
    let lines = [
        "extra-index-url =",
        "https://a.example/simple",
        "https://b.example/simple",
        "trusted-host = a.example",
        "retries = 3",
        "require-virtualenv = true",
    ];
    holds(".config/pip/pip.conf", text, &lines);
    holds(".pip/pip.conf", text, &lines);
}

#[test]
fn settings_of_cargo_and_others() {
    let text = r#"
# hunter2
[build]
rustflags = ["-C", "target-cpu=native"]
rustc-wrapper = "hunter2"
target-dir = "/hunter2"
[target.x86_64-unknown-linux-gnu]
linker = "clang"
[env]
KEY = "hunter2"
OTHER = { value = "hunter2", force = true }
[http]
proxy = "me:hunter2@proxy.example:3128"
[net]
git-fetch-with-cli = true
[registry]
token = "hunter2"
credential-provider = ["hunter2", "x"]
global-credential-providers = ["hunter2"]
[registries.mine]
index = "sparse+https://crates.example/index/"
token = "hunter2"
credential-provider = "hunter2"
[registries.yours]
index = "https://me:hunter2@crates.example/"
[registries."its.token"]
index = "hunter2"
[source.crates-io]
replace-with = "mine"
[source.mine]
registry = "https://hunter2@crates.example/"
[alias]
b = "build --release"
x = ["run", "--config", "registry.token='hunter2'"]
[patch.crates-io]
a = { git = "https://hunter2@example.org/" }
"#;
    let lines = [
        r#""b" = "build --release""#,
        r#""rustflags" = ["-C", "target-cpu=native"]"#,
        r#""git-fetch-with-cli" = true"#,
        r#""index" = "sparse+https://crates.example/index/""#,
        r#""replace-with" = "mine""#,
        r#""linker" = "clang""#,
    ];
    holds(".cargo/config.toml", text, &lines);
    holds(".cargo/config", text, &lines);
    let text = "[virtualenvs]\nin-project = true\n[http-basic.x]\nusername = 'hunter2'\npassword = 'hunter2'\n\
        [repositories.x]\nurl = 'https://pypi.example/'\n[pypi-token]\nx = 'hunter2'\n";
    let lines = [r#""url" = "https://pypi.example/""#, r#""in-project" = true"#];
    holds(".config/pypoetry/config.toml", text, &lines);
    let text = "index-url = 'https://me:hunter2@host/'\nlink-mode = 'copy'\n[[index]]\nurl = 'https://hunter2@host/'\n";
    holds(".config/uv/uv.toml", text, &[r#""link-mode" = "copy""#]);
    let text = "[install]\nexact = true\nregistry = { url = 'https://r.example/', token = 'hunter2' }\n\
        [install.scopes]\nmine = { token = 'hunter2', url = 'https://hunter2@r.example/' }\n";
    holds(".bunfig.toml", text, &[r#""exact" = true"#, r#""url" = "https://r.example/""#]);
    let text = "[ui]\nusername = Some Body <some@example.org>\n[auth]\nx.password = hunter2\n[paths]\nx = https://me:hunter2@h/\n";
    holds(".hgrc", text, &["username = Some Body <some@example.org>"]);
}

/// Each pattern matches the name of a setting and not what stands for any section or setting.
#[test]
fn no_pattern_is_for_everything() {
    for profile in ["read-only", "workspace", "no-exec"] {
        let copies = built_in_profile(profile).home.copies;
        assert!(copies.len() >= 10, "{profile}");
        for copy in copies.iter() {
            for pattern in copy.keep.iter() {
                let name = pattern.trim_start_matches("*.");
                assert!(
                    name.starts_with(
                        |first: char| first.is_ascii_alphanumeric() || matches!(first, '@' | ':')
                    ),
                    "{pattern}"
                );
                assert!(pattern.chars().all(|letter| letter.is_ascii_graphic()), "{pattern}");
            }
        }
    }
}

#[test]
fn settings_of_yarn_gem_and_bundler() {
    let yarn = "\
nodeLinker: node-modules
npmRegistryServer: \"https://mirror.example.org/\"
npmAuthToken: hunter2
npmAuthIdent: \"me:hunter2\"
npmScopes:
  company:
    npmRegistryServer: https://me:hunter2@example.org/
    npmAuthToken: \"hunter2\"
plugins:
  - ~/hunter2.js
yarnPath: ~/hunter2.cjs
httpsProxy: http://me:hunter2@proxy/
enableTelemetry: false
";
    holds(
        ".yarnrc.yml",
        yarn,
        &[
            "nodeLinker: node-modules",
            "npmRegistryServer: \"https://mirror.example.org/\"",
            "enableTelemetry: false",
        ],
    );
    let registry = "npmRegistryServer: https://me:hunter2@mirror.example.org/\nnmMode: classic\n";
    holds(".yarnrc.yml", registry, &["nmMode: classic"]);
    let gem = "---\n:rubygems_api_key: hunter2\n:sources:\n- https://rubygems.org/\ngem: --no-document\n";
    holds(".gemrc", gem, &[":sources:", "- https://rubygems.org/", "gem: --no-document"]);
    holds(".gemrc", ":sources:\n- https://rubygems.org/\n- https://me:hunter2@example.org/\n", &[]);
    let bundler = "\
---
BUNDLE_JOBS: \"4\"
BUNDLE_GITHUB__COM: \"me:hunter2\"
BUNDLE_GEMS__EXAMPLE__ORG: hunter2
BUNDLE_BUILD__NOKOGIRI: \"--use-system-libraries\"
BUNDLE_WITHOUT: \"development:test\"
";
    holds(
        ".bundle/config",
        bundler,
        &[
            "BUNDLE_JOBS: \"4\"",
            "BUNDLE_BUILD__NOKOGIRI: \"--use-system-libraries\"",
            "BUNDLE_WITHOUT: \"development:test\"",
        ],
    );
}
