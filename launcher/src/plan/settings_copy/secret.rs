//! What looks like a credential. The patterns of a profile decide by names. This is the second line: for a credential
//! in the value of a harmless name, such as a password in the address of a package index, and for patterns that match
//! more than was meant.

/// Longer than any setting that is harmless.
const LONGEST: usize = 4096;

/// Words, and parts of words, that speak of credentials.
const WORDS: [&[u8]; 14] = [
    b"token",
    b"secret",
    b"passw",
    b"passphrase",
    b"pass:",
    b"pass=",
    b"pwd",
    b"credential",
    b"bearer",
    b"authorization",
    b"_auth",
    b"apikey",
    b"api-key",
    b"api_key",
];

/// Which begins a key in a file of text.
const ARMOUR: &[u8] = b"-----";

/// So many letters and digits in a row are a word only if they are letters alone.
const LONG_RUN: usize = 20;

/// So many are one if they seldom change between small letters, capitals and digits. A random piece of this length
/// changes seven times, a name of two words with a number four times.
const SHORT_RUN: usize = 12;
const CHANGES: usize = 6;

/// Whether a name or a value may hold a credential, or lead to one:
///
/// - a word of it speaks of one;
/// - an address in it has a user (`https://user@host`, `user:password@host`), a query or a fragment;
/// - it has a piece that looks random: twenty letters and digits or more with nothing between them, of both kinds; or
///   twelve that change between small letters, capitals and digits six times; or twenty, with `-` and `_` between them,
///   a quarter of them digits;
/// - it is longer than any harmless one.
pub fn is_in(text: &[u8]) -> bool {
    text.len() > LONGEST
        || speaks_of_one(text)
        || addresses(text).any(|address| has_user(address) || has_query(address))
        || looks_random(text)
}

/// Whether a line of a list of names may be a key: a name may well speak of secrets (`secrets.yml`).
pub fn may_be_key(line: &[u8]) -> bool {
    line.len() > LONGEST || line.windows(ARMOUR.len()).any(|part| part == ARMOUR) || looks_random(line)
}

fn speaks_of_one(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let has = |word: &[u8]| lower.windows(word.len()).any(|part| part == word);
    WORDS.iter().any(|word| has(word)) || has(ARMOUR)
}

/// The pieces that may be addresses. What ends one in a list may also stand in a password.
fn addresses(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let in_list = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b',' | b'|');
    text.split(in_list).chain(text.split(u8::is_ascii_whitespace))
}

/// What is before an `@` may be a password wherever a colon or two slashes are before it, or a port or a path behind.
/// The address of a mailbox has none of these.
fn has_user(address: &[u8]) -> bool {
    let Some(at) = address.iter().rposition(|byte| *byte == b'@') else { return false };
    let (before, behind) = address.split_at_checked(at).unwrap_or_default();
    // Not what is behind the colon of git's short form of an address.
    let end = behind.iter().position(|byte| matches!(byte, b':' | b'/')).and_then(|end| behind.get(end..));
    let has_more = matches!(end, Some([b'/', ..] | [b':', b'0'..=b'9', ..]));
    has_more && !before.is_empty() || before.contains(&b':') || before.windows(2).any(|pair| pair == b"//")
}

/// Addresses may lack their scheme.
fn has_query(address: &[u8]) -> bool {
    let mut path = address.iter().skip_while(|byte| **byte != b'/');
    path.any(|byte| matches!(byte, b'?' | b'#'))
}

fn looks_random(text: &[u8]) -> bool {
    let digits = |piece: &[u8]| piece.iter().filter(|byte| byte.is_ascii_digit()).count();
    let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let changes =
        |piece: &[u8]| piece.iter().zip(piece.iter().skip(1)).filter(|(a, b)| kind(a) != kind(b)).count();
    let is_key = |piece: &[u8]| {
        let is_mixed = || piece.len() >= SHORT_RUN && changes(piece) >= CHANGES;
        digits(piece) > 0 && (piece.len() >= LONG_RUN || is_mixed())
    };
    let is_grouped_key = |piece: &[u8]| piece.len() >= LONG_RUN && digits(piece) * 4 >= piece.len();
    text.split(|byte| !byte.is_ascii_alphanumeric()).any(is_key)
        || text
            .split(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'_'))
            .any(is_grouped_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_a_credential_is_left_out() {
        for value in [
            "https://user:pass@host/simple",
            "https://user@host/",
            "https://host/ https://x:y@host/",
            "//me:pw@host",
            "//me@host",
            "socks5h://me:p/w@host",
            "me:hunter2@proxy:3128",
            "hunter@proxy:3128",
            "hunter@proxy.example/",
            "proxy.example:3128/?key=x",
            "proxy.example/simple#x",
            "https://a.example,https://u:p@b.example|direct",
            "https://me:hunter,two@host/",
            "https://me:hunter|two@host/",
            "\"https://me:hunter'two@host/\"",
            "https://host/a,b/simple?key=x",
            "https://host/simple?key=x",
            "https://host/x#fragment",
            "https://host/@scope/name",
            "GLPAT-abcdefghijklmnopqrs1",
            "npm_abcdefghijklmnopqrstuvwxyz0123456789",
            "https://dl.example/0a1b2c3d4e5f6a7b8c9d0e1f/simple/",
            "01234567-89ab-cdef-0123-456789abcdef",
            "12345678901234567890",
            "https://dl.example/Ab3dEf6hIj9kLm2n/org/python/simple/",
            "https://dl.example/0a1b2c3d4e5f/",
            "server pwd is x",
            "user: me, pass: x",
            "Authorization: Basic YWxhZGRpbg==",
            "!curl -H 'PRIVATE-TOKEN: x'",
            "-----BEGIN CERTIFICATE-----",
            "x_auth=1",
            "registry.token",
            "//host/:_authToken",
            "_auth",
            "x.Password",
            "api_key",
            "MY.SECRETS",
        ] {
            assert!(is_in(value.as_bytes()), "{value}");
        }
        assert!(is_in(&[b'x'; LONGEST + 1]) && !is_in(&[b'x'; LONGEST]));
    }

    #[test]
    fn what_carries_none_is_not() {
        for value in [
            "",
            "true",
            "60",
            "author.name",
            "user.email",
            "some@example.org",
            "https://pypi.example/simple",
            "git@example.org:x.git",
            "log --oneline --format='%h %s' @{u}",
            "x86_64-unknown-linux-gnu",
            "thumbv7em-none-eabihf",
            "-C link-arg=-fuse-ld=mold",
            "internationalization",
            "https://host.example/Python3Packages/simple",
            "https://host.example/Team2023Release10/",
            "aarch64be-unknown-none-softfloat",
            "trailing-space,space-before-tab,-indent-with-non-tab",
            "127.0.0.1:8080",
            "https://proxy.example:3128",
            "git-lfs clean -- %f",
        ] {
            assert!(!is_in(value.as_bytes()), "{value}");
        }
    }
}
