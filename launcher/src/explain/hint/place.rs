//! The paths that a refused call would change, and how they are named for a shell.

use crate::explain::caller;
use crate::explain::decode::{Access, Decoded, PathArgument};
use crate::plan::files::tidy;
use crate::plan::namespaces::Layout;
use crate::plan::namespaces::git::shape::belongs;
use crate::plan::namespaces::renewed;
use crate::sys::path::is_of_process;
use crate::sys::process::Pid;
use crate::sys::within::is_below;
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

/// The repository of git that has a file, or that a path leads to.
pub fn repository_at(path: &Path) -> Option<&Path> {
    path.ancestors().find(|above| belongs(above, above))
}

/// What is opened as a whole, for whoever needs one of its files needs others too: the repository of git that has a
/// file, or the environment of Python's that has a program.
pub fn whole_of(path: &Path, executes: bool) -> Option<&Path> {
    let repository = path.parent().and_then(repository_at);
    repository.or_else(|| if executes { environment_of(path) } else { None })
}

/// The virtual environment that has a program, as python(1) itself finds it.
fn environment_of(program: &Path) -> Option<&Path> {
    program.ancestors().skip(1).take(2).find(|above| above.join("pyvenv.cfg").is_file())
}

/// Whether a rule opens a path, and none the directory that it is in, which is another one inside: there a mount holds
/// its name.
pub fn is_opened_alone(layout: &Layout, path: &Path) -> bool {
    let mounted = || renewed::changed(&layout.private, &layout.systems).flat_map(|(_, keep)| keep);
    let kept = || mounted().map(|kept| &*kept.path);
    kept().any(|kept| kept == path) && !kept().any(|kept| is_below(path, kept))
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
