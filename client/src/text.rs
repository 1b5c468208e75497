//! Words in messages.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The cause of a system error, in lower case and without std's number; what helps against it, where that is known.
pub fn cause(error: &io::Error) -> String {
    let text = error.to_string();
    let sentence = text.split(" (os error").next().unwrap_or(&text);
    match error.raw_os_error() {
        None => return sentence.to_string(),
        Some(libc::EMFILE) => return "too many open files; allow more with 'ulimit -n'".to_string(),
        Some(_) => {}
    }
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// A path as printable text on one line. Somebody else may have chosen its name, and a terminal obeys control
/// characters.
pub fn shown(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\\' | '"' => text.extend(['\\', char]),
                ' '..='~' => text.push(char),
                _ if char.is_alphanumeric() => text.extend(char.escape_debug()),
                _ => text.extend(char.escape_default()),
            }
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn what_a_path_has_in_it_does_not_steer_the_terminal() {
        let path = OsStr::from_bytes(b"/a 'b'\\\"\x1b[2J\n\xff\xc3\xbc\xe2\x80\xae");
        assert_eq!(shown(Path::new(path)), r#"/a 'b'\\\"\u{1b}[2J\n\xffü\u{202e}"#);
    }

    #[test]
    fn a_cause_is_a_clause() {
        assert_eq!(cause(&io::Error::from_raw_os_error(libc::ENOENT)), "no such file or directory");
        assert!(cause(&io::Error::from_raw_os_error(libc::EMFILE)).contains("ulimit"));
        assert_eq!(cause(&io::Error::other("odd")), "odd");
    }
}
