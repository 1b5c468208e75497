//! Configuration files of git.

use sbx::plan::namespaces::git_config::{Setting, parse};

/// Input: the text of a configuration. The parser ends and invents nothing. It finds a value that is written as git
/// writes it.
pub fn git(text: &[u8]) {
    let settings = parse(text);
    assert!(settings.len() <= text.len());
    let length: usize = settings.iter().map(|setting| value_of(setting).len()).sum();
    assert!(length <= text.len() && settings.iter().all(|setting| !value_of(setting).contains(&0)));
    let value: Vec<u8> = text.iter().copied().filter(|byte| *byte != 0).collect();
    let written = [b"[core]\n\thooksPath = ", &*quoted(&value), b"\n[other]\n"].concat();
    match parse(&written).as_slice() {
        [setting] => assert!(is_hooks(setting) && value_of(setting) == value, "{written:?}"),
        _ => panic!("{written:?}"),
    }
}

fn value_of(setting: &Setting) -> &[u8] {
    setting.value.as_deref().unwrap_or_default()
}

fn is_hooks(setting: &Setting) -> bool {
    setting.is("core", "hookspath")
}

/// Quotes a value as `git config` does.
fn quoted(value: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in value {
        match byte {
            b'\n' => text.extend(b"\\n"),
            b'\t' => text.extend(b"\\t"),
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            _ => text.push(*byte),
        }
    }
    text.push(b'"');
    text
}
