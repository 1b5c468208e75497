//! Hostile files, and what the real readers make of a copy.

use super::*;
use crate::testing::{Random, listed_by_git};
use SettingsFormat::{Git, Ini, Json, Npm, Toml, Yaml};
use std::io::Write;
use std::process::{Command, Stdio};

mod json;
mod yaml;

/// A key as a service gives one out, and a password as a person makes one up.
const SECRET: &str = "hunter2";

fn keep(patterns: &[&str]) -> Vec<Pattern> {
    patterns.iter().map(|pattern| Pattern::new(pattern.to_string().into())).collect()
}

fn copy_of(format: SettingsFormat, patterns: &[&str], text: &str) -> String {
    let copy = filtered(format, &keep(patterns), text.as_bytes()).unwrap();
    String::from_utf8(copy).unwrap()
}

#[test]
fn what_is_kept_of_git() {
    let patterns = ["user.*", "color.*", "alias.*", "safe.directory", "branch.*", "include*", "url.*"];
    for (text, expected) in [
        ("[user]\n\tname = Some Body\n", "[user]\n\tname = \"Some Body\"\n"),
        ("[User] Name=a # hunter2\n", "[user]\n\tname = \"a\"\n"),
        ("[user]\r\nname = a ; x\r\n[color]\r\n ui\r\n", "[user]\n\tname = \"a\"\n[color]\n\tui\n"),
        ("\u{feff}[color \"A\\\"b\"]\nx = \"#;\\\\\\\"\"\n", "[color \"A\\\"b\"]\n\tx = \"#;\\\\\\\"\"\n"),
        ("[user]\nname = a\\\n  b\n", "[user]\n\tname = \"a  b\"\n"),
        (
            "[user]\nname = a\n[core]\npager = x\n[user]\nemail=b\n",
            "[user]\n\tname = \"a\"\n\temail = \"b\"\n",
        ),
        (
            "[safe]\ndirectory = *\ndirectory = /a b\n",
            "[safe]\n\tdirectory = \"*\"\n\tdirectory = \"/a b\"\n",
        ),
        // A name that is kept, with the rest of the line in it.
        ("[user]\nname = a\\\npassword = hunter2\nemail = b\n", "[user]\n\temail = \"b\"\n"),
        ("[user]\nname = \"a\\npassword = hunter2\"\n", ""),
        // Shell commands, further files, addresses with a password, names with one.
        ("[alias]\nx = !curl -u me:hunter2 https://x\ny = log -1\n", "[alias]\n\ty = \"log -1\"\n"),
        ("[alias]\nx = \" !hunter2\"\n", ""),
        ("[include]\npath = hunter2\n[includeIf \"gitdir:/x\"]\npath = hunter2\n", ""),
        ("[url \"https://me:hunter2@host/\"]\ninsteadOf = https://host/\n", ""),
        (
            "[branch \"x\"]\nremote = https://me:hunter2@host/x\nmerge = a\n",
            "[branch \"x\"]\n\tmerge = \"a\"\n",
        ),
        ("[user]\ntoken = hunter2\npassword = hunter2\n", ""),
        ("[credential]\nhelper = hunter2\n[http]\nextraHeader = hunter2\n", ""),
        // Without its command, a filter would take contents as they are.
        ("[filter \"a\"]\nclean = sed -k hunter2\n", "[filter \"a\"]\n\trequired = \"true\"\n"),
        (
            "[filter \"a\"]\nrequired = false\nprocess = x\n[user]\nname = a\n",
            "[user]\n\tname = \"a\"\n[filter \"a\"]\n\trequired = \"true\"\n",
        ),
        ("[filter \"a\"]\nrequired = false\n", ""),
        ("[user]\nname = a\0hunter2\n", "[user]\n\tname = \"a\"\n"),
        ("[user]\nname = a\u{1}b\n", ""),
        ("[]\nname = a\n[ \"user\"]\nname = a\n[.user]\nname = a\n", ""),
    ] {
        assert_eq!(copy_of(Git, &patterns, text), expected, "{text:?}");
    }
    for broken in ["[user]\nname = \"a\n", "[user\nname = a\n", "[user]\nna me = a\n", "[user]\nname = \\x\n"]
    {
        let text = format!("[user]\nname = b\n{broken}[user]\nemail = hunter2\n");
        assert_eq!(filtered(Git, &keep(&["*"]), text.as_bytes()), Err(Unreadable), "{text:?}");
    }
}

#[test]
fn what_is_kept_of_an_ini_file() {
    let patterns = ["*.timeout", "*.index-url", "*.extra-index-url", "global.list", "*.trusted-host"];
    for (text, expected) in [
        ("[global]\ntimeout = 60\n", "[global]\ntimeout = 60\n"),
        ("[Global]\r\nTimeout: 60\r\nx=1\r\n", "[Global]\ntimeout = 60\n"),
        ("# hunter2\n[global]\n; hunter2\ntimeout=60\n", "[global]\ntimeout = 60\n"),
        ("[global] hunter2\ntimeout = 60\n", "[global]\ntimeout = 60\n"),
        ("[global]\ntimeout = 60 # hunter2\nlist = 60 ;hunter2\n", ""),
        ("[global]\nindex-url = https://host/simple\n", "[global]\nindex-url = https://host/simple\n"),
        ("[global]\nindex-url = https://me:hunter2@host/simple\n", ""),
        ("[global]\nindex-url = https://host/simple?x=hunter2\n", ""),
        // Lines that continue a value, whatever they look like.
        ("[global]\ntimeout = 60\n  password = hunter2\nlist = 1\n", "[global]\nlist = 1\n"),
        ("[global]\npassword =\n  hunter2\n  timeout = 60\n\n\tlist = 1\n", ""),
        ("[global]\ntimeout =\n  [other]\n  hunter2\n", ""),
        ("[global]\ntimeout = 60\r  hunter2\n", ""),
        ("[global]\ntimeout = 60\n\u{3000}hunter2\n", ""),
        (
            "[global]\nextra-index-url =\n  https://a/simple\n\n  # x\n  https://b:80/simple/\n",
            "[global]\nextra-index-url = \n    https://a/simple\n    https://b:80/simple/\n",
        ),
        ("[global]\nextra-index-url =\n  https://a/simple\n  https://me:hunter2@b/\n", ""),
        ("[global]\ntrusted-host =\n  a.example:8080\n", "[global]\ntrusted-host = \n    a.example:8080\n"),
        ("[global]\ntrusted-host =\n  password:hunter2\n", ""),
        ("[global]\ntrusted-host =\n  hunter2\n", ""),
        ("  [global]\n  timeout = 1\n  list = 2\n", "[global]\ntimeout = 1\nlist = 2\n"),
        ("[a]\ntimeout=1\n[b]\nx=1\n[c]\ntimeout=2\n", "[a]\ntimeout = 1\n[c]\ntimeout = 2\n"),
        ("[a]\n[b = hunter2\n", ""),
    ] {
        assert_eq!(copy_of(Ini, &patterns, text), expected, "{text:?}");
    }
    for broken in [
        "timeout = 1\n",
        "\u{feff}[global]\ntimeout = 1\n",
        "[global]\ntimeout\n",
        "[global]\n= 1\n",
        "[global]\ntimeout = 1\ntimeout = 2\n",
        "[global]\ntimeout = 1\nTIMEOUT = 2\n",
        "[global]\n[global]\n",
        "[global]]\ntimeout = 1\n",
        "[]\ntimeout = 1\n",
        "[global]\ntimeout = 1\0\n",
        "[global]\ntimeout = 1\u{2028}x\n",
        "[global]\ntimeout = 1\u{c}\n",
    ] {
        assert_eq!(filtered(Ini, &keep(&["*"]), broken.as_bytes()), Err(Unreadable), "{broken:?}");
    }
    assert_eq!(filtered(Ini, &keep(&["*"]), b"[a]\nb = \xff\n"), Err(Unreadable));
}

#[test]
fn what_is_kept_of_npm() {
    let patterns = ["registry", "@*:registry", "save-exact", "omit", "//*", "_*", "GO*"];
    for (text, expected) in [
        ("registry=https://host/\n", "registry=https://host/\n"),
        (" registry = https://host/ ; hunter2\n", "registry=https://host/\n"),
        ("registry=https://host/#hunter2\n", "registry=https://host/\n"),
        ("@scope:registry=https://host/npm/\r\n", "@scope:registry=https://host/npm/\n"),
        (
            "save-exact=\"true\"\nregistry='https://host/'\n",
            "save-exact=\"true\"\nregistry='https://host/'\n",
        ),
        ("omit[]=dev\nomit[] = peer\n", "omit[]=dev\nomit[]=peer\n"),
        ("GOPROXY=https://a,https://b|direct\n", "GOPROXY=https://a,https://b|direct\n"),
        ("save-exact\nregistry=\n", "registry=\n"),
        // Credentials, in every form that npm knows.
        ("//host/:_authToken=hunter2\n_auth=hunter2\n_password=hunter2\n//host/:_password=hunter2\n", ""),
        ("registry=https://me:hunter2@host/\n@a:registry=https://hunter2@host/\n", ""),
        ("registry=https://host/?hunter2\nregistry=${NPM_TOKEN}\nregistry=https://${X}@host/\n", ""),
        ("save-exact=${X}\nregistry=$X\nomit=\"${X}\"\n", ""),
        ("registry=https://host/\\\nhunter2\n", ""),
        ("registry=\"https://host/\\u0040\"\nregistry=\"a\" hunter2\nregistry=\"a\n", ""),
        ("\"registry\"=hunter2\nreg istry=hunter2\n=hunter2\n", ""),
        ("; registry=hunter2\n#registry=hunter2\n", ""),
        ("registry=a\rhunter2\n", "registry=a\n"),
        // Nothing says what a section means.
        ("save-exact=true\n[x]\nregistry=hunter2\n", "save-exact=true\n"),
        ("  [x\nregistry=hunter2\n", ""),
        ("\u{feff}registry=hunter2\nsave-exact=true\n", "save-exact=true\n"),
    ] {
        assert_eq!(copy_of(Npm, &patterns, text), expected, "{text:?}");
    }
    for broken in [&b"registry=a\0b\n"[..], b"registry=\xff\n", "registry=a\u{85}b\n".as_bytes()] {
        assert_eq!(filtered(Npm, &keep(&["*"]), broken), Err(Unreadable), "{broken:?}");
    }
}

#[test]
fn what_is_kept_of_toml() {
    let patterns = [
        "build.*",
        "target.*.rustflags",
        "registries.*.index",
        "alias.*",
        "profile.*",
        "net.*",
        "registry.*",
    ];
    for (text, expected) in [
        ("[build]\njobs = 2\n", "[\"build\"]\n\"jobs\" = 2\n"),
        ("\u{feff}build = { jobs = 2, x = 'a\"\\' }\n", "[\"build\"]\n\"jobs\" = 2\n\"x\" = \"a\\\"\\\\\"\n"),
        (
            "[target.'cfg(unix)']\nrustflags = ['-C', \"é\"]\nrunner = 'hunter2'\n",
            "[\"target\".\"cfg(unix)\"]\n\"rustflags\" = [\"-C\", \"é\"]\n",
        ),
        (
            "[registries.a]\nindex = 'https://host/'\ntoken = 'hunter2'\n",
            "[\"registries\".\"a\"]\n\"index\" = \"https://host/\"\n",
        ),
        ("[registries.a]\nindex = 'https://me:hunter2@host/'\n", ""),
        ("[registries]\n'a.index' = 'hunter2'\n", ""),
        ("[registry]\ntoken = 'hunter2'\n[registry.x]\ntoken = 'hunter2'\n", ""),
        ("[alias]\nb = ['build', 'https://me:hunter2@host']\nc = []\n", "[\"alias\"]\n\"c\" = []\n"),
        ("[[build]]\njobs = 'hunter2'\n", ""),
        ("[build]\nx = [{ y = 'hunter2' }]\nz = [['hunter2']]\n", ""),
        ("[build]\nx = '''a\nhunter2'''\ny = \"a\\u0000\"\n", ""),
        (
            "[profile.a.b]\nd = 1.5e3\n[profile.a]\nc = true\n",
            "[\"profile\".\"a\"]\n\"c\" = true\n[\"profile\".\"a\".\"b\"]\n\"d\" = 1.5e3\n",
        ),
    ] {
        assert_eq!(copy_of(Toml, &patterns, text), expected, "{text:?}");
    }
    for broken in
        ["[build\njobs = 1\n", "[build]\njobs = 1\njobs = 2\n", "[build]\nx = \"a\n", "[build]\nx = 'a\0'\n"]
    {
        assert_eq!(filtered(Toml, &keep(&["*"]), broken.as_bytes()), Err(Unreadable), "{broken:?}");
    }
}

#[test]
fn files_without_measure_end() {
    let many = |piece: &str, end: &str| piece.repeat(200_000) + end;
    for (format, text) in [
        (Git, many("[user]", "\nname = a\n")),
        (Git, format!("[user]\nname = {}", many("x", "\n"))),
        (Git, format!("[user \"{}\"]\nname = a\n", many("\\\"", ""))),
        (Ini, format!("[a]\nx =\n{}", many(" y\n", ""))),
        (Ini, format!("[a]\n{}", many("  ", "x = 1\n"))),
        (Npm, many("registry=x;", "")),
        (Npm, many("registry=x\n", "")),
        (Toml, format!("x = {}", many("[", &"]".repeat(200_000)))),
        (Toml, many("a.", "a = 1")),
        (Toml, format!("[{}]\nx = 1", many("a.", "a"))),
        (Toml, format!("x = {}", many("{a=", ""))),
        (Toml, format!("x = \"{}\"", many("\\u0041", ""))),
        (Yaml, many("x: y\n", "")),
        (Yaml, format!("x: {}", many("y ", "\n"))),
        (Yaml, format!("x:\n{}", many("- y\n", ""))),
        (Yaml, (0..2_000).map(|n| format!("{}x:\n", " ".repeat(n))).collect()),
    ] {
        let _ = filtered(format, &keep(&["*", "*a*b*c", "user.*", "x*x*x*x"]), text.as_bytes());
    }
    let long = format!("[user]\nname = {}\nemail = a\n", "x".repeat(1 << 20));
    assert_eq!(copy_of(Git, &["*"], &long), "[user]\n\temail = \"a\"\n");
}

/// Pieces of which files are made that are nearly right.
fn pieces(format: SettingsFormat) -> Vec<&'static str> {
    let own: &[&str] = match format {
        Git => &[
            "[kept]\n",
            "[kept \"x\"]\n",
            "[kept.y]",
            "[other]\n",
            "[include]",
            "\tname",
            "\\\n",
            "\\",
            "\\n",
            "!",
        ],
        Ini => &["[kept]\n", "[other]\n", "[", "\n  ", "\n\t", "name", ": ", "  ", "https://host/x\n", "\r"],
        Npm => {
            &["kept.name", "kept.b[]", "other", "[kept]\n", "//h/:_auth=", "\\", "'", "${X}", "\r", "kept.c"]
        }
        Toml => &[
            "[kept]\n",
            "[kept.x]\n",
            "[other]\n",
            "[[kept.z]]\n",
            "'",
            "'''",
            "{ name = ",
            "}",
            "[1, ",
            "kept.b",
        ],
        Json => &json::PIECES,
        Yaml => &yaml::PIECES,
    };
    let common = [
        "name",
        " = ",
        "=",
        "\n",
        "\n",
        "\n",
        "\"",
        "]",
        "#",
        ";",
        " ",
        "a",
        "name2 = x\n",
        "1",
        "true",
        "é",
        "\r\n",
    ];
    own.iter().chain(&common).chain(&[SECRET, "user:hunter2@", "other = hunter2\n"]).copied().collect()
}

fn made(format: SettingsFormat, random: &mut Random) -> String {
    let pieces = pieces(format);
    let starts: &[&str] = match format {
        Yaml => &["", "kept: ", "kept:\n- ", "kept:\n  - x\n", "other: ", "other:\n  name: x\nkept: "],
        Json => &["{", "{\"kept\": ", "{\"kept\": {\"name\": ", "{\"other\": "],
        _ => &["", "[kept]\n", "[kept]\nname = ", "kept.name=", "[other]\nx = "],
    };
    let mut text = starts[random.below(starts.len())].to_string();
    (0..random.below(16)).for_each(|_| text.push_str(pieces[random.below(pieces.len())]));
    text
}

/// What a reader finds: names, and their values.
type Found = Vec<(String, String)>;

/// A copy holds nothing that its reader does not find in the file too, under a name that is kept.
#[track_caller]
fn assert_part(text: &str, copy: &str, of_text: Option<&Found>, of_copy: Option<&Found>) {
    let of_copy = of_copy.unwrap_or_else(|| panic!("{text:?}: nobody reads {copy:?}"));
    let of_text = of_text.unwrap_or_else(|| panic!("{text:?}: {copy:?} is a copy of what nobody reads"));
    for entry in of_copy {
        assert!(entry.0.to_lowercase().starts_with("kept"), "{text:?}: {copy:?}");
        assert!(of_text.contains(entry), "{text:?}: {copy:?}: {entry:?} is not in {of_text:?}");
    }
    let is_kept = |entry: &&(String, String)| entry.0.to_lowercase().starts_with("kept");
    let has_secret = |(name, value): &(String, String)| name.contains(SECRET) || value.contains(SECRET);
    let may_have = of_text.iter().filter(is_kept).any(has_secret);
    assert!(may_have || !copy.contains(SECRET), "{text:?}: {copy:?}");
}

/// Files, and their copies as far as there are any, of which the copy is not empty.
fn copies(format: SettingsFormat, rounds: usize) -> Vec<(String, String)> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let texts = (0..rounds).map(|_| made(format, &mut random));
    let kept = keep(&["kept*"]);
    let copy = |text: String| {
        let copy = filtered(format, &kept, text.as_bytes()).ok()?;
        let again = filtered(format, &kept, &copy);
        assert_eq!(again.as_deref(), Ok(&*copy), "{text:?}");
        Some((text, String::from_utf8(copy).unwrap()))
    };
    texts.filter_map(copy).filter(|(_, copy)| !copy.is_empty()).collect()
}

fn by_git(text: &str) -> Option<Found> {
    let output = listed_by_git(text.as_bytes())?;
    let listed = output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())?;
    let entry = |entry: &str| {
        let (name, value) = entry.split_once('\n').unwrap_or((entry, "(none)"));
        // Only newer versions keep a tab in a value.
        (name.to_string(), value.replace('\t', " "))
    };
    Some(listed.split_terminator('\0').map(entry).collect())
}

#[test]
fn git_finds_nothing_else_in_a_copy() {
    if by_git("").is_none() {
        return;
    }
    let copies = copies(Git, 10_000);
    assert!(copies.len() > 80, "{}", copies.len());
    for (text, copy) in copies.iter().take(300) {
        assert_part(text, copy, by_git(text).as_ref(), by_git(copy).as_ref());
    }
}

#[test]
fn toml_says_nothing_else_in_a_copy() {
    fn leaves(table: &::toml::de::DeTable<'_>, way: &str, found: &mut Found) {
        for (key, value) in table.iter() {
            let name = format!("{way}{}", key.get_ref());
            match value.get_ref() {
                ::toml::de::DeValue::Table(table) => leaves(table, &format!("{name}."), found),
                value => found.push((name, shown(value))),
            }
        }
    }
    fn shown(value: &::toml::de::DeValue<'_>) -> String {
        match value {
            ::toml::de::DeValue::Array(items) => {
                items.iter().map(|item| shown(item.get_ref()) + ",").collect()
            }
            ::toml::de::DeValue::String(text) => format!("{text:?}"),
            other => format!("{other:?}"),
        }
    }
    let read = |text: &str| {
        let mut found = Found::new();
        leaves(::toml::de::DeTable::parse(text).ok()?.get_ref(), "", &mut found);
        Some(found)
    };
    let copies = copies(Toml, 40_000);
    assert!(copies.len() > 80, "{}", copies.len());
    for (text, copy) in &copies {
        assert_part(text, copy, read(text).as_ref(), read(copy).as_ref());
    }
}

/// What a program makes of many texts: it reads a list of them as JSON and prints what it finds in each. `None` where
/// it is not installed.
fn by_program(program: &[&str], texts: &[&str]) -> Option<Vec<Option<Found>>> {
    let mut child = Command::new(program[0]);
    child.args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().ok()?;
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(texts).unwrap()).unwrap();
    serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap()
}

#[track_caller]
fn assert_parts(copies: &[(String, String)], program: &[&str]) {
    let texts: Vec<&str> = copies.iter().flat_map(|(text, copy)| [text.as_str(), copy.as_str()]).collect();
    let Some(found) = by_program(program, &texts) else { return };
    assert_eq!(found.len(), texts.len());
    for ((text, copy), found) in copies.iter().zip(found.chunks(2)) {
        assert_part(text, copy, found[0].as_ref(), found[1].as_ref());
    }
}

#[test]
fn python_finds_nothing_else_in_a_copy() {
    const READER: &str = r#"
import configparser, io, json, sys
def read(text):
    parser = configparser.RawConfigParser()
    try:
        parser.read_file(io.StringIO(text, newline=None))
    except configparser.Error:
        return None
    lines = lambda value: "\n".join(line for line in value.split("\n") if line)
    return [[s + "." + k, lines(v)] for s in parser.sections() for k, v in parser.items(s)]
print(json.dumps([read(text) for text in json.load(sys.stdin)]))
"#;
    let copies = copies(Ini, 20_000);
    assert!(copies.len() > 80, "{}", copies.len());
    assert_parts(&copies, &["python3", "-c", READER]);
}

#[test]
fn npm_finds_nothing_else_in_a_copy() {
    // npm's own reader, where npm is.
    const READER: &str = r#"
const { execSync } = require("child_process"), path = require("path"), fs = require("fs");
let ini;
try {
    const program = execSync("command -v npm", { shell: "/bin/sh" }).toString().trim();
    ini = require(path.join(fs.realpathSync(program), "../../node_modules/ini"));
} catch {
    console.log("null");
    process.exit(0);
}
const leaves = (value) => typeof value === "object" ? JSON.stringify(value) : String(value);
const read = (text) => Object.entries(ini.parse(text)).map(([key, value]) => [key, leaves(value)]);
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map(read)));
"#;
    // A name that stands twice has its last value, which may be left out; a list may lose some of its items.
    let once = |text: &str| {
        let keys: Vec<&str> =
            text.split(['\r', '\n']).map(|line| line.split(['=', ';', '#']).next().unwrap().trim()).collect();
        let mut sorted: Vec<&str> =
            keys.iter().map(|key| key.trim_end_matches("[]")).filter(|key| !key.is_empty()).collect();
        let count = sorted.len();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len() == count
    };
    let copies = copies(Npm, 20_000);
    let copies: Vec<_> = copies.into_iter().filter(|(text, _)| once(text)).collect();
    assert!(copies.len() > 80, "{}", copies.len());
    assert_parts(&copies, &["node", "-e", READER]);
}
