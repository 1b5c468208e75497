//! A document with a place for generated tables.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::Result;

/// Opened at the start, so that a document that cannot be written is reported before anything is measured, and so that
/// a driver which gives up its rights meanwhile can still write it.
pub(crate) struct Document {
    path: PathBuf,
    file: File,
}

impl Document {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.map_err(|e| format!("cannot open '{}' to update it: {e}", path.display()))?;
        Ok(Self { path: path.into(), file })
    }

    /// Puts the text between the two markers that carry this name.
    pub(crate) fn put(&mut self, name: &str, text: &str) -> Result<()> {
        let failed = |e: std::io::Error| format!("cannot update '{}': {e}", self.path.display());
        let mut old = String::new();
        self.file.rewind().and_then(|()| self.file.read_to_string(&mut old)).map_err(failed)?;
        let new = replaced(&old, name, text)
            .ok_or_else(|| format!("'{}' has no place for '{name}'", self.path.display()))?;
        let file = &mut self.file;
        let written = file.rewind().and_then(|()| file.write_all(new.as_bytes()));
        written.and_then(|()| self.file.set_len(new.len() as u64)).map_err(failed)
    }
}

fn replaced(old: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name}: begin -->"), format!("<!-- {name}: end -->"));
    let (front, rest) = old.split_once(&begin)?;
    let (_, back) = rest.split_once(&end)?;
    Some(format!("{front}{begin}\n\n{}\n\n{end}{back}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let old = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n<!-- y: begin --><!-- y: end -->\n";
        let new = replaced(old, "x", "\nnew\n").unwrap();
        assert_eq!(
            new,
            "a\n<!-- x: begin -->\n\nnew\n\n<!-- x: end -->\nb\n<!-- y: begin --><!-- y: end -->\n"
        );
        assert_eq!(replaced(&new, "x", "new"), Some(new.clone()));
        assert_eq!(replaced(old, "z", "new"), None);
    }
}
