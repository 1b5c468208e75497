//! The settings of a repository of Mercurial.

/// Whether hg only reads from it where repositories on other machines are: on this one, it loads their extensions.
pub fn is_plain_hgrc(text: &[u8]) -> bool {
    // hg ends lines in other ways too, and passes over a mark of UTF-8.
    let is_text = text.iter().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..0x7f));
    let is_address = |value: &[u8]| {
        let rest =
            [&b"https://"[..], b"http://", b"ssh://"].iter().find_map(|kind| value.strip_prefix(*kind));
        rest.and_then(|rest| rest.first()).is_some_and(u8::is_ascii_alphanumeric)
    };
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    is_text
        && lines.all(|line| match line.first() {
            None | Some(b'#' | b';') => true,
            Some(b'[') => line == b"[paths]",
            // One that begins with a space goes on with the value before.
            Some(first) => {
                let value = line.splitn(2, |byte| *byte == b'=').nth(1);
                first.is_ascii_alphabetic() && value.is_some_and(|value| is_address(value.trim_ascii_start()))
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_other_machines_are_plain() {
        for text in ["", "# x\n[paths]\ndefault = https://example.org/x\ndefault:pushurl=ssh://hg@h/x\n; y\n"]
        {
            assert!(is_plain_hgrc(text.as_bytes()), "{text}");
        }
        for line in [
            "x = /x",
            "x = ../x",
            "x = file:///x",
            "x = path://y",
            "x = ssh://-o/x",
            "x = ssh:///x",
            "x",
            "x = https://h\n /x",
            "x = https://h\n\t/x",
            "%include x",
            "[ui]",
            "x = union:/x",
            "x = $X",
            "x =",
        ] {
            let text = format!("[paths]\n{line}\n");
            assert!(!is_plain_hgrc(text.as_bytes()), "{text}");
        }
    }
}
