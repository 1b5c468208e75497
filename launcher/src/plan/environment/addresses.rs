//! Passwords and tokens in addresses.

/// Whether the addresses in a value may hold a password or a token. Programs do not agree about which part of an
/// address is one. So whatever has an `@` or a query counts, but for the name in `ssh://git@host`: with it goes a
/// key, not a password. What looks like a part of the path cannot be told.
pub fn may_hold_password(value: &[u8]) -> bool {
    value.split(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | b'|')).any(|address| {
        let after = |byte: u8| address.iter().position(|other| *other == byte).map(|at| address.split_at(at));
        let login =
            after(b'@').is_some_and(|(before, rest)| rest[1..].contains(&b'@') || !is_ssh_name(before));
        let fragment = after(b'#').is_some_and(|(_, rest)| rest.contains(&b'='));
        login || fragment || address.contains(&b'?')
    })
}

/// Whether this is `ssh://` and a name, perhaps after `git+` or the like.
fn is_ssh_name(text: &[u8]) -> bool {
    let scheme = b"ssh://";
    let Some(at) = text.windows(scheme.len()).position(|part| part == scheme) else { return false };
    let (before, name) = (&text[..at], &text[at + scheme.len()..]);
    !before.iter().chain(name).any(|byte| matches!(byte, b':' | b'/' | b'%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_may_be_a_password_counts() {
        for value in [
            "http://user:secret@proxy:3128",
            "http://secret@proxy:3128",
            "user:secret@proxy:3128",
            "https://index/simple https://u:s@other/simple",
            "https://a,https://u:s@b|direct",
            "http://user:se/cr?et@proxy",
            "http://u:s,t@proxy",
            "https://index/simple?token=s",
            "https://index/simple#token=s",
            "ssh://git:secret@host/index",
            "ssh://git@host/x@y",
            "https://h/ssh://x@y",
            "name=https://u:s@host",
        ] {
            assert!(may_hold_password(value.as_bytes()), "{value}");
        }
        for value in [
            "",
            "off",
            "http://proxy:3128",
            "socks5h://[::1]:1080/",
            "localhost,127.0.0.1,.internal,10.0.0.0/8",
            "https://proxy.example|https://other.example,direct",
            "sparse+https://index.example/api/v1/",
            "ssh://git@host/index",
            "git+ssh://git@host/index#branch",
        ] {
            assert!(!may_hold_password(value.as_bytes()), "{value}");
        }
    }
}
