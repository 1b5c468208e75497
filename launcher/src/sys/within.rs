//! Which path is below which. Planning a run asks that so often that [`Path::starts_with`], which splits
//! both paths, would take a tenth of a start.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether a path is a directory, or below it: what [`Path::starts_with`] says.
pub fn is_within(path: &Path, directory: &Path) -> bool {
    let (text, prefix) = (path.as_os_str().as_bytes(), directory.as_os_str().as_bytes());
    if prefix == b"/" {
        return text.first() == Some(&b'/');
    }
    let common = common(text, prefix);
    match (text.get(common), prefix.get(common)) {
        (None, None) => true,
        (Some(b'/'), None) if ends_in_name(prefix) => true,
        (Some(a), None) if *a != b'/' && counts(text, common) && ends_in_name(prefix) => false,
        (Some(_), Some(_)) if counts(text, common) && counts(prefix, common) => false,
        (None, Some(_)) if goes_on(prefix, common) => false,
        _ => path.starts_with(directory),
    }
}

/// Whether the last byte is one of a name.
fn ends_in_name(path: &[u8]) -> bool {
    path.last().is_some_and(|last| !matches!(last, b'/' | b'.'))
}

/// Whether what follows here makes another path of what is before it.
fn goes_on(path: &[u8], at: usize) -> bool {
    match path.get(at) {
        Some(b'/') => path.get(at + 1).is_some_and(|next| !matches!(next, b'/' | b'.')),
        _ => counts(path, at),
    }
}

/// How many bytes two texts begin with together. Most paths share a good deal.
fn common(one: &[u8], other: &[u8]) -> usize {
    let (words, _) = one.as_chunks::<8>();
    let same = words.iter().zip(other.as_chunks::<8>().0).take_while(|(a, b)| a == b).count() * 8;
    let rest = one.iter().zip(other).skip(same);
    same + rest.take_while(|(a, b)| a == b).count()
}

/// The rest of a path below a directory: what [`Path::strip_prefix`] says.
pub fn rest_below<'p>(path: &'p Path, directory: &Path) -> Option<&'p Path> {
    let (text, prefix) = (path.as_os_str().as_bytes(), directory.as_os_str().as_bytes());
    if text == prefix {
        return Some(Path::new(""));
    }
    let is_odd = |byte: Option<&u8>| byte.is_none_or(|byte| matches!(byte, b'/' | b'.'));
    let rest = if prefix == b"/" {
        text.strip_prefix(b"/")
    } else {
        text.strip_prefix(prefix).filter(|_| !is_odd(prefix.last())).and_then(|rest| rest.strip_prefix(b"/"))
    };
    match rest {
        Some(rest) if !is_odd(rest.first()) && !is_odd(rest.last()) => {
            Some(Path::new(OsStr::from_bytes(rest)))
        }
        _ if !is_within(path, directory) => None,
        _ => path.strip_prefix(directory).ok(),
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
    let (a, b) = (one.as_os_str().as_bytes(), other.as_os_str().as_bytes());
    let common = common(a, b);
    match (a.get(common), b.get(common)) {
        (None, None) => true,
        (Some(_), Some(_)) if counts(a, common) && counts(b, common) => false,
        (Some(_), None) if goes_on(a, common) => false,
        (None, Some(_)) if goes_on(b, common) => false,
        _ => one == other,
    }
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
                let (rest, same) = (rest_below(one, other), one.strip_prefix(other).ok());
                assert_eq!(rest.map(Path::as_os_str), same.map(Path::as_os_str), "{one:?} {other:?}");
                assert_eq!(is_same(one, other), one == other, "{one:?} {other:?}");
                assert_eq!(is_below(one, other), one != other && one.starts_with(other), "{one:?} {other:?}");
            }
        }
    }
}
