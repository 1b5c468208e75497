//! How a shell may read on from a place in a command: which letter comes next, and what is nothing to it.
//!
//! Nobody keeps count of quotes here. For that all of the shell's grammar would be needed, comments and here-documents
//! included, and a single mistake would hide what stands behind it. So a place is read in every way in which a shell
//! may read it, between quotes of either kind or outside: more is found than a shell would, and nothing less.

/// The letters that may come next, each with what stands behind it: as it stands there, what an escape of `$'...'`
/// stands for, or a blank for `$IFS`.
pub(super) fn letters(text: &str) -> impl Iterator<Item = (char, &str)> {
    let next = first(text);
    let meant = next.and_then(|(letter, behind)| match letter {
        '\\' => escaped(behind),
        '$' => behind_separator(behind).map(|behind| (' ', behind)),
        _ => None,
    });
    next.into_iter().chain(meant)
}

/// What stands behind something that comes next and that a shell takes off: a quote, a backslash, the end of a line
/// behind one, a redirection.
pub(super) fn behind_nothing(text: &str) -> impl Iterator<Item = &str> {
    let joined = text.strip_prefix("\\\n");
    let quote = || {
        let quoted = text.strip_prefix('$').filter(|behind| behind.starts_with(['\'', '"']));
        quoted.or_else(|| text.strip_prefix(['\'', '"', '\\']))
    };
    joined.or_else(quote).into_iter().chain(behind_redirection(text))
}

/// The letter that an escape of `$'...'` at the end of a text stands for, if there may be one.
pub(super) fn escape_at_end(text: &str) -> Option<char> {
    // That of `\U0010ffff`.
    const LONGEST: usize = 10;
    let starts = text.rmatch_indices('\\').take_while(|(at, _)| text.len() - at <= LONGEST);
    let mut escapes = starts.filter_map(|(at, backslash)| escaped(text.get(at + backslash.len()..)?));
    escapes.find_map(|(letter, behind)| behind.is_empty().then_some(letter))
}

fn first(text: &str) -> Option<(char, &str)> {
    let mut letters = text.chars();
    letters.next().map(|letter| (letter, letters.as_str()))
}

/// The letter that is meant by what stands behind a backslash in `$'...'` (bash(1), QUOTING). `None` also where it is
/// that letter itself.
fn escaped(text: &str) -> Option<(char, &str)> {
    const BYTE: u32 = 0xff;
    let (letter, behind) = first(text)?;
    let meant = match letter {
        'a' => '\x07',
        'b' => '\x08',
        'e' | 'E' => '\x1b',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '0'..='7' => return numbered(text, 8, 3, BYTE),
        'u' => return numbered(behind, 16, 4, u32::MAX),
        'U' => return numbered(behind, 16, 8, u32::MAX),
        'x' => {
            // bash knows these brackets, and its manual does not.
            let Some(inner) = behind.strip_prefix('{') else { return numbered(behind, 16, 2, BYTE) };
            let (letter, behind) = numbered(inner, 16, usize::MAX, BYTE)?;
            return Some((letter, behind.strip_prefix('}').unwrap_or(behind)));
        }
        'c' => {
            let (key, behind) = first(behind)?;
            return char::from_u32(u32::from(key) & 0x1f).map(|control| (control, behind));
        }
        _ => return None,
    };
    Some((meant, behind))
}

/// The letter whose number a text begins with, in at most so many digits.
fn numbered(text: &str, radix: u32, most: usize, mask: u32) -> Option<(char, &str)> {
    let digits = || text.chars().map_while(|letter| letter.to_digit(radix)).take(most);
    let number = digits().fold(0, |number: u32, digit| number.wrapping_mul(radix).wrapping_add(digit));
    let (_, behind) = text.split_at_checked(digits().count()).filter(|(digits, _)| !digits.is_empty())?;
    char::from_u32(number & mask).map(|letter| (letter, behind))
}

/// What stands behind `IFS` or `{IFS...}`: with a `$` before it, a blank.
fn behind_separator(text: &str) -> Option<&str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    match text.strip_prefix("{IFS") {
        Some(rest) => rest.split_once('}').map(|(_, behind)| behind),
        None => text.strip_prefix("IFS").filter(|behind| !behind.starts_with(is_of_name)),
    }
}

/// What a redirection has between the number or name of its descriptor and its file (bash(1), REDIRECTION). One stands
/// before those that it begins with.
const OPERATORS: [&str; 12] = ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"];

/// What stands behind a redirection, its file included.
fn behind_redirection(text: &str) -> Option<&str> {
    let text = match text.strip_prefix('{') {
        Some(name) => name.split_once('}')?.1,
        None => text.trim_start_matches(|next: char| next.is_ascii_digit()),
    };
    let mut file = OPERATORS.iter().find_map(|operator| text.strip_prefix(operator))?;
    while let Some(rest) = file.strip_prefix([' ', '\t']).or_else(|| file.strip_prefix("\\\n")) {
        file = rest;
    }
    behind_word(file)
}

/// What stands behind the word that a text begins with. No quote is open where a redirection begins, so here they can
/// be counted.
fn behind_word(text: &str) -> Option<&str> {
    const BETWEEN: [char; 10] = [' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')'];
    let is_substituted = |rest: &str| rest.starts_with("<(") || rest.starts_with(">(");
    let mut rest = text;
    while !rest.is_empty() && (!rest.starts_with(BETWEEN) || is_substituted(rest)) {
        rest = behind_part(rest, false, DEEPEST);
    }
    (rest.len() < text.len()).then_some(rest)
}

/// How deep brackets in brackets are followed.
const DEEPEST: usize = 50;

/// What opens a part of a word in which other parts stand, and what closes it.
const BRACKETS: [(&str, char); 4] = [("$(", ')'), ("${", '}'), ("`", '`'), ("\"", '"')];
/// Those that mean nothing between double quotes.
const BARE_BRACKETS: [(&str, char); 3] = [("<(", ')'), (">(", ')'), ("(", ')')];

/// What stands behind the first part of a word: brackets or quotes with all that is in them, or a letter.
fn behind_part(text: &str, is_quoted: bool, depth: usize) -> &str {
    if let Some(escaped) = text.strip_prefix('\\') {
        return behind_letter(escaped);
    }
    let bare: &[_] = if is_quoted { &[] } else { &BARE_BRACKETS };
    if let Some(quoted) = text.strip_prefix('\'').filter(|_| !is_quoted) {
        return behind_quoted(quoted, false);
    }
    if let Some(quoted) = text.strip_prefix("$'").filter(|_| !is_quoted) {
        return behind_quoted(quoted, true);
    }
    let mut brackets = BRACKETS.iter().chain(bare);
    let opened = brackets.find_map(|(opening, closing)| Some((text.strip_prefix(opening)?, *closing)));
    let (Some((mut rest, closing)), Some(depth)) = (opened, depth.checked_sub(1)) else {
        return behind_letter(text);
    };
    let is_quoted = closing == '"' || closing == '}' && is_quoted;
    while !rest.is_empty() {
        match rest.strip_prefix(closing) {
            Some(behind) => return behind,
            None => rest = behind_part(rest, is_quoted, depth),
        }
    }
    rest
}

/// What stands behind the end of single quotes.
fn behind_quoted(text: &str, has_escapes: bool) -> &str {
    let mut rest = text;
    while let Some((letter, behind)) = first(rest) {
        rest = if has_escapes && letter == '\\' { behind_letter(behind) } else { behind };
        if letter == '\'' {
            break;
        }
    }
    rest
}

fn behind_letter(text: &str) -> &str {
    first(text).map_or(text, |(_, behind)| behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_letters() {
        for (text, letter, behind) in [
            ("n", '\n', ""),
            ("tx", '\t', "x"),
            ("e[0m", '\x1b', "[0m"),
            ("x73h", 's', "h"),
            ("x9", '\t', ""),
            ("x{73}h", 's', "h"),
            ("x{00073h", 's', "h"),
            ("163h", 's', "h"),
            ("0410", '!', "0"),
            ("563", 's', ""),
            ("u0073h", 's', "h"),
            ("u73", 's', ""),
            ("U0001f600x", '\u{1f600}', "x"),
            ("cJgit", '\n', "git"),
        ] {
            assert_eq!(escaped(text), Some((letter, behind)), "{text}");
        }
        for text in ["", "\\", "'", "xyz", "x{}", "ud800", "8", "g", "c"] {
            assert_eq!(escaped(text), None, "{text}");
        }
    }

    #[test]
    fn an_escape_is_found_at_an_end() {
        for (text, letter) in [
            (r"x\n", Some('\n')),
            (r"x\x0a", Some('\n')),
            (r"x\U0000000a", Some('\n')),
            (r"x\x61", Some('a')),
            (r"x\nx", None),
            ("x", None),
            (r"é\", None),
        ] {
            assert_eq!(escape_at_end(text), letter, "{text}");
        }
    }

    #[test]
    fn a_redirection_ends_where_its_file_does() {
        for (text, behind) in [
            ("> x y", " y"),
            (">x;y", ";y"),
            ("2>&1 y", " y"),
            ("2>&- y", " y"),
            ("12>>\t\\\n x y", " y"),
            ("{out}>x y", " y"),
            ("&>>x y", " y"),
            (">|x y", " y"),
            ("<>x y", " y"),
            ("<<-'END' y", " y"),
            ("<<<\"a b\" y", " y"),
            (r"<a\ b y", " y"),
            (r">'a\'b y", " y"),
            (r">$'a\' b' y", " y"),
            (">\"it's $(echo \"a b\" ')') `c d`\" y", " y"),
            (">${x:-a \"} b\"} y", " y"),
            (">\"${x:-it's}\" y", " y"),
            (">$(a (b c) d) y", " y"),
            ("< <(a b) y", " y"),
            (">'a b", ""),
        ] {
            assert_eq!(behind_redirection(text), Some(behind), "{text}");
        }
        for text in ["x", "2", "{ a; }", ">", "> ;", ">(a) b", "<(a) b", "12 >x"] {
            assert_eq!(behind_redirection(text), None, "{text}");
        }
    }

    #[test]
    fn brackets_without_end_are_not_followed_forever() {
        let deep = format!(">{}", "$(".repeat(100_000));
        assert_eq!(behind_redirection(&deep), Some(""));
    }
}
