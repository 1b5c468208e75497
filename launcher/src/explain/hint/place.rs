//! The paths that a refused call would change, and how they are named for a shell.

use crate::explain::caller;
use crate::explain::decode::{Access, Decoded, PathArgument};
use crate::plan::files::tidy;
use crate::plan::namespaces::git::shape::belongs;
use crate::sys::path::is_of_process;
use crate::sys::process::Pid;
use crate::text::escape;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Access that changes something.
pub const CHANGES: Access = Access::WRITE
    .with(Access::CREATE)
    .with(Access::REMOVE)
    .with(Access::TRUNCATE)
    .with(Access::REFER)
    .with(Access::ATTRIBUTES);

/// Longest path that is written out; a longer one would not be worth copying.
const LONGEST: usize = 400;

/// The paths that the call would change.
pub fn changed(decoded: &Decoded) -> impl Iterator<Item = &PathArgument> {
    decoded.paths.iter().filter(|argument| argument.access.intersects(CHANGES))
}

/// Where a path leads: absolute. Without a thread to ask, it starts at `base`, and links are not followed.
pub fn absolute(argument: &PathArgument, thread: Option<Pid>, base: Option<&Path>) -> Option<PathBuf> {
    if let Some(thread) = thread {
        return caller::resolve(thread, argument.dirfd, &argument.path, argument.follow);
    }
    let path = Path::new(OsStr::from_bytes(&argument.path));
    if path.is_relative() && argument.dirfd.is_some() {
        return None;
    }
    Some(tidy(&base?.join(path)))
}

/// What has to be opened for writing for this access: what is changed and there already, or the directory in which an
/// entry is made or removed. Not the root, though, and of devices just the one.
pub fn to_open(path: &Path, access: Access) -> Option<PathBuf> {
    // No flag of another run could name it.
    if is_of_process(path) {
        return None;
    }
    let entries = Access::REMOVE | Access::REFER;
    let contents = Access::WRITE | Access::TRUNCATE | Access::ATTRIBUTES;
    let is_changed = access.intersects(contents) && !access.intersects(entries);
    if path.starts_with("/dev") || (is_changed && path.parent().is_some() && path.exists()) {
        return Some(path.to_path_buf());
    }
    // What is named in a flag has to be there.
    let directory = path.ancestors().skip(1).find(|directory| directory.is_dir())?;
    let whole = directory == Path::new("/");
    if whole { path.is_file().then(|| path.to_path_buf()) } else { Some(directory.to_path_buf()) }
}

/// The repository of git that has a file: whoever needs one of its files needs others too.
pub fn repository_of(path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).find(|above| belongs(above, above))
}

/// Whether `quoted` writes a word out.
pub fn is_whole(word: &OsStr) -> bool {
    word.len() <= LONGEST
}

/// A path for a shell.
pub fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > LONGEST {
        return format!("'{}'", escape(bytes, LONGEST).replace('\'', "'\\''"));
    }
    if !bytes.is_empty() && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"/._-+@%,:".contains(b)) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if is_printable(text) => format!("'{}'", text.replace('\'', "'\\''")),
        // bash, zsh and ksh read this form; no other can hold a control character on one line.
        _ => format!("$'{}'", bytes.iter().map(|byte| ansi_c(*byte)).collect::<String>()),
    }
}

/// Whether a terminal shows this text as it is.
fn is_printable(text: &str) -> bool {
    let rest = text.replace(['"', '\\'], "");
    escape(rest.as_bytes(), usize::MAX) == rest
}

fn ansi_c(byte: u8) -> String {
    match byte {
        b'\n' => "\\n".to_string(),
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    }
}
