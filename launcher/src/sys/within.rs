//! Which path is below which. Planning a run asks that so often that [`Path::starts_with`], which splits
//! both paths, would take a tenth of a start.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether a path is a directory, or below it: what [`Path::starts_with`] says.
pub fn is_within(path: &Path, directory: &Path) -> bool {
    let (text, prefix) = (path.as_os_str().as_bytes(), directory.as_os_str().as_bytes());
    let common = text.iter().zip(prefix).take_while(|(a, b)| a == b).count();
    let ends_in_name = prefix.last().is_some_and(|last| !matches!(last, b'/' | b'.'));
    match (text.get(common), prefix.get(common)) {
        (None, None) => true,
        (Some(b'/'), None) if ends_in_name => true,
        (Some(_), Some(_)) if counts(text, common) && counts(prefix, common) => false,
        (Some(a), None) if *a != b'/' && counts(text, common) && ends_in_name => false,
        (None, Some(b)) if *b != b'/' && counts(prefix, common) => false,
        _ => path.starts_with(directory),
    }
}

/// Whether the path changes without this byte: repeated slashes count as one, and a component `.` means
/// nothing.
fn counts(path: &[u8], at: usize) -> bool {
    match path.get(at) {
        Some(b'/') => at > 0 && !matches!(path.get(at - 1), Some(b'/' | b'.')),
        Some(b'.') => path.get(at + 1).is_some_and(|next| *next != b'/'),
        _ => true,
    }
}

/// Whether a path is below a directory.
pub fn is_below(path: &Path, directory: &Path) -> bool {
    is_within(path, directory) && !is_same(path, directory)
}

/// Whether two paths are the same by their names: what comparing them says.
pub fn is_same(one: &Path, other: &Path) -> bool {
    is_within(one, other) && is_within(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts of up to four of these characters, absolute or not.
    fn texts() -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..4 {
            last = last
                .iter()
                .flat_map(|text| ["/", ".", "a", "b"].map(|next| format!("{text}{next}")))
                .collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    #[test]
    fn says_what_the_general_way_says() {
        let texts = texts();
        for one in &texts {
            let one = Path::new(one);
            for other in &texts {
                let other = Path::new(other);
                assert_eq!(is_within(one, other), one.starts_with(other), "{one:?} {other:?}");
                assert_eq!(is_same(one, other), one == other, "{one:?} {other:?}");
                assert_eq!(is_below(one, other), one != other && one.starts_with(other), "{one:?} {other:?}");
            }
        }
    }
}
