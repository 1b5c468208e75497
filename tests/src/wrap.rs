//! Prose that the suites write into documents.

/// The longest line, in characters. Rows of tables cannot be wrapped and may be longer.
pub const WIDTH: usize = 120;

/// Wraps a paragraph at [`WIDTH`]; each line but the first begins with `indent`.
pub fn wrapped(paragraph: &str, indent: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in paragraph.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            text.push('\n');
            text.push_str(indent);
            width = indent.len();
        } else if width > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_filled_and_never_longer_than_the_width() {
        let paragraph = vec!["word"; 60].join(" ");
        let text = wrapped(&paragraph, "  ");
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths, [119, 116, 66]);
        assert_eq!(text.replace("\n ", ""), paragraph);
    }
}
