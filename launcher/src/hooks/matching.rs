//! Whether a rule of the user's is about a command.

use crate::hooks::reading::{behind_nothing, escape_at_end, letters};
use std::collections::BTreeSet;

/// Whether the pieces of a rule between its stars stand in a command, in their order. The first begins where a word
/// does and the last ends where one does, unless a star says that they are parts of words.
pub(super) fn is_about(rule: &str, command: &str) -> bool {
    let Some(pattern) = rule.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    // Quotes and backslashes are nothing in a command, so they are nothing here. That makes a star behind a backslash
    // do for more than itself.
    let pattern = pattern.replace(['\'', '"', '\\'], "");
    let pattern = pattern.trim();
    // What may stand before the words or behind them is no part of these.
    let pattern = pattern.strip_suffix(":*").unwrap_or(pattern);
    let pattern = pattern.trim_end_matches(" *").trim_start_matches("* ");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let pieces: Vec<String> = pattern.split('*').map(words).filter(|piece| !piece.is_empty()).collect();
    let mut rest = command;
    for (place, piece) in pieces.iter().enumerate() {
        let begins = place == 0 && !pattern.starts_with('*');
        let ends = place + 1 == pieces.len() && !pattern.ends_with('*');
        match behind_first(piece, rest, begins, ends) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    true
}

/// What stands in a command behind the place of a piece that ends first, one where a word begins or ends if it has to.
fn behind_first<'a>(piece: &str, command: &'a str, begins: bool, ends: bool) -> Option<&'a str> {
    let first = piece.chars().next()?;
    let places = command.char_indices().filter_map(|(at, _)| command.split_at_checked(at));
    let places = places.filter(|(before, from)| {
        letters(from).any(|(letter, _)| is_read(letter, first)) && !(begins && ends_amid_word(before))
    });
    let found = places.flat_map(|(_, from)| behind(piece, from));
    found.filter(|behind| !(ends && behind.starts_with(is_of_word))).max_by_key(|behind| behind.len())
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || "_-".contains(letter)
}

/// Whether what comes next belongs to the word that a text ends with.
fn ends_amid_word(text: &str) -> bool {
    text.ends_with(is_of_word) && escape_at_end(text).is_none_or(is_of_word)
}

/// Blanks are as good as each other.
fn is_read(letter: char, wanted: char) -> bool {
    letter == wanted || wanted == ' ' && letter.is_whitespace()
}

/// What may stand behind a piece that a text begins with, in some way to read it.
fn behind<'a>(piece: &str, text: &'a str) -> Vec<&'a str> {
    let mut places = vec![text];
    let mut is_in_blank = false;
    for letter in piece.chars() {
        places = behind_letter(letter, places, is_in_blank);
        is_in_blank = letter == ' ';
    }
    places
}

/// What may stand behind a letter that comes next in one of these texts, which are ends of one command. Many blanks are
/// as good as one.
fn behind_letter(wanted: char, mut texts: Vec<&str>, is_in_blank: bool) -> Vec<&str> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    while let Some(text) = texts.pop() {
        if !seen.insert(text.len()) {
            continue;
        }
        texts.extend(behind_nothing(text));
        for (letter, behind) in letters(text) {
            if is_read(letter, wanted) {
                found.push(behind);
            }
            if is_in_blank && letter.is_whitespace() {
                texts.push(behind);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(cases: &[(&str, &str, bool)]) {
        for (rule, command, expected) in cases {
            assert_eq!(is_about(rule, command), *expected, "{rule} {command}");
        }
    }

    #[test]
    fn a_rule_is_about_what_the_agent_would_match_and_more() {
        each(&[
            ("Bash(git push:*)", "git push origin main", true),
            ("Bash(git push:*)", "cd x && git   push", true),
            ("Bash(git push:*)", "git pushd", false),
            ("Bash(git push *)", "git pull", false),
            ("Bash(rm:*)", "sudo rm -rf x", true),
            ("Bash(rm:*)", "perform; farm-x", false),
            ("Bash(rm:*)", "x=$(rm y)", true),
            ("Bash(rm)", "rm", true),
            ("Bash(rm*)", "rmdir x", true),
            ("Bash(git * main)", "git checkout main", true),
            ("Bash(git * main)", "git checkout master", false),
            ("Bash(*)", "anything", true),
            ("Read(./x)", "cat x", false),
            ("Bash", "ls", false),
        ]);
    }

    #[test]
    fn a_star_makes_parts_of_words_do() {
        each(&[
            ("Bash(*prod*)", "kubectl --context myprod delete ns x", true),
            ("Bash(*prod*)", "kubectl --context prod2 get ns", true),
            ("Bash(*prod*)", "echo hello", false),
            ("Bash(*prod)", "ls myprod", true),
            ("Bash(*prod)", "ls products", false),
            ("Bash(prod*)", "products", true),
            ("Bash(prod*)", "ls myprod", false),
            ("Bash(*.sh)", "./deploy.sh", true),
            ("Bash(*.sh)", "./deploy.sh --now", true),
            ("Bash(*.sh)", "./deploy.shx", false),
            ("Bash(*.sh)", "./deploy", false),
            ("Bash(*00)", "chmod 1000", true),
            ("Bash(*00)", "chmod 1001", false),
            ("Bash(*secret*:*)", "cat mysecrets", true),
            ("Bash(*secret* *)", "cat mysecrets x", true),
            ("Bash(* rm *)", "sudo rm x", true),
            ("Bash(* rm *)", "perform x", false),
            ("Bash(rm * *)", "rm x y", true),
            ("Bash(rm * *)", "rmdir x y", false),
            ("Bash(* --force)", "git push --force", true),
            ("Bash(* --force)", "git push --force-with-lease", false),
            ("Bash(*:*)", "anything", true),
        ]);
    }

    #[test]
    fn words_that_are_written_in_another_way_are_the_same() {
        each(&[
            ("Bash(git push:*)", "git \\\n push origin", true),
            ("Bash(git push:*)", "git \\\n\\\n\tpush origin", true),
            ("Bash(git push:*)", "gi\\\nt pu\\\nsh", true),
            ("Bash(git push:*)", "git 'push'", true),
            ("Bash(git push:*)", "git \"push\" x", true),
            ("Bash(git push:*)", "'git' \"\" p'us'h", true),
            ("Bash(git push:*)", "gi\\t push", true),
            ("Bash(git push:*)", "git\t \n push", true),
            ("Bash(git push:*)", "git\\ push", true),
            // Neither of these lines goes on in the next one.
            ("Bash(git push:*)", "# x\\\ngi\\\nt 'push'", true),
            ("Bash(git push:*)", "echo x\\\\\ngit 'push'", true),
            ("Bash(git push:*)", "git\\\npush", false),
            ("Bash(git push:*)", "git 'pull' \"push\"", false),
            ("Bash(git push:*)", "git 'pushd'", false),
            ("Bash(git push:*)", "digit 'push'", false),
            ("Bash(git push:*)", "'git", false),
            ("Bash(*secret*)", "cat my's'ecret", true),
            ("Bash(*secret*)", "cat 's' ecret", false),
            ("Bash(git push:*)", "git${IFS}push", true),
            ("Bash(git push:*)", "git$IFS'push'", true),
            ("Bash(git push:*)", "git ${IFS%?} push", true),
            ("Bash(git push:*)", "git$IFSpush", false),
            ("Bash(git push:*)", "git${x}push", false),
        ]);
    }

    #[test]
    fn quotes_and_backslashes_of_a_rule_are_those_of_a_command() {
        each(&[
            ("Bash(git commit -m \"x y\")", "git commit -m \"x y\"", true),
            ("Bash(git commit -m \"x y\")", "git \\\n commit -m \"x  y\"", true),
            ("Bash(git commit -m \"x y\")", "git commit -m 'x y'", true),
            ("Bash(git commit -m \"x y\")", "git commit -m \"x z\"", false),
            ("Bash(*\\n*)", "printf 'a\\nb'", true),
            ("Bash(*\\n*)", "echo x", false),
            ("Bash(é \"ü\"*)", "é \"ü\"x", true),
            (r"Bash(grep a\\b)", r"grep a\\b", true),
            (r"Bash(grep a\\b)", "grep b", false),
            (r"Bash(echo \(x\))", "echo '(x)'", true),
            (r"Bash(echo \(x\))", r"echo \(x\)", true),
            (r"Bash(python3 -c print\(*\))", "python3 -c 'print(1)'", true),
            (r"Bash(python3 -c print\(*\))", "python3 -c 'exit(1)'", false),
            (r"Bash(rm \*)", "rm *", true),
            (r"Bash(rm \*)", "rmdir x", false),
            (r"Bash(find . -name \*.c:*)", "find . -name '*.c' -delete", true),
        ]);
    }

    #[test]
    fn redirections_between_words_are_none_of_them() {
        each(&[
            ("Bash(mkdir -p:*)", "mkdir >/dev/null -p made", true),
            ("Bash(git push:*)", "git 2>&1 push origin", true),
            ("Bash(git push:*)", "git 2>&1 >x </dev/null push", true),
            ("Bash(git push:*)", "git > x push", true),
            ("Bash(git push:*)", "git>x push", true),
            ("Bash(git push:*)", ">x git>>y push", true),
            ("Bash(git push:*)", "git &>'a b' push", true),
            ("Bash(git push:*)", "git 2>/dev/null \\\n push", true),
            ("Bash(git push:*)", "git <<E push\nx\nE", true),
            ("Bash(git push:*)", "git <<<\"$(echo 'x y')\" push", true),
            ("Bash(git push:*)", "git {log}>x push", true),
            // What stands before it may look as if it opened a quote.
            ("Bash(git push:*)", "# don't\ngit 2>&1 push", true),
            ("Bash(git push:*)", "cat <<E\n\"\nE\ngit >\"x\" push", true),
            ("Bash(git push:*)", "echo \"$(git >x push)\"", true),
            ("Bash(git push:*)", "git >push origin", false),
            ("Bash(git push:*)", "git > push origin", false),
            ("Bash(git push:*)", "git >x pull", false),
            ("Bash(git push:*)", "git >x; push", false),
            // Where a rule names one, that counts.
            ("Bash(echo * > /etc/*)", "echo x > /etc/motd", true),
            ("Bash(echo * > /etc/*)", "echo x > /tmp/motd", false),
            // The piece that ends first leaves most for the next one.
            ("Bash(a b*c*)", "a >\"$(a b c)\" b", true),
        ]);
    }

    #[test]
    fn letters_that_are_written_as_escapes_are_the_same() {
        each(&[
            ("Bash(git push:*)", "git $'push'", true),
            ("Bash(git push:*)", "git $\"push\"", true),
            ("Bash(git push:*)", "g$'i't push", true),
            ("Bash(git push:*)", r"git $'pu\x73h'", true),
            ("Bash(git push:*)", r"git $'pu\163\u0068'", true),
            ("Bash(git push:*)", r"$'\x67it' push", true),
            ("Bash(git push:*)", r"eval $'git\x20push'", true),
            ("Bash(git push:*)", r"bash -c $'true\ngit push'", true),
            ("Bash(git push:*)", r"bash -c $'true\x0agit push'", true),
            ("Bash(git push:*)", r"bash -c $'\'git\' \tpush'", true),
            ("Bash(git push:*)", r"git $'pu\x74h'", false),
            ("Bash(git push:*)", r"$'\x61git' push", false),
        ]);
    }

    #[test]
    fn a_long_command_takes_no_long_time() {
        let began = std::time::Instant::now();
        for part in ["git ", "git >x ", "git 'pus' ", "<$(", "\\x67", "g\"\"", "{g"] {
            let command = part.repeat(100_000 / part.len());
            assert!(!is_about("Bash(git push:*)", &command), "{part}");
        }
        assert!(began.elapsed().as_secs() < 60);
    }
}
