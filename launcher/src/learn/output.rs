//! The file that the learned profile goes to. Its directory is opened before the command runs, so that nothing the
//! command does to names can lead the profile elsewhere.

use crate::error::Refusal;
use crate::host::Host;
use crate::plan::namespaces::record::Workspaces;
use crate::sys::path::{canonical, directory_of};
use crate::sys::within::is_within;
use crate::sys::{SyscallError, file, memory};
use crate::text::shown;
use std::ffi::OsString;
use std::fs::FileType;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where a profile is to be written.
pub struct Output {
    path: PathBuf,
    name: OsString,
    /// The path of its directory.
    above: PathBuf,
    directory: OwnedFd,
}

/// What it is that is no regular file.
fn oddity(kind: FileType) -> Option<&'static str> {
    match kind {
        _ if kind.is_file() => None,
        _ if kind.is_dir() => Some("a directory"),
        _ if kind.is_symlink() => Some("a symbolic link"),
        _ => Some("a device, a pipe or a socket"),
    }
}

impl Output {
    /// Opens the directory.
    pub fn prepare(path: &Path, host: &Host) -> Result<Output, Refusal> {
        let cannot = |why: String| Refusal::new(format!("cannot write the profile '{}': {why}", shown(path)));
        let name = path.file_name().ok_or_else(|| cannot("it names no file".to_string()))?;
        if let Some(what) = path.symlink_metadata().ok().and_then(|meta| oddity(meta.file_type())) {
            return Err(cannot(format!("it is {what}, and would be replaced; name a regular file")));
        }
        let above = directory_of(path);
        let directory = Workspaces::of(host).open_directory(above).map_err(|why| cannot(why.to_string()))?;
        let output = Output {
            path: path.to_path_buf(),
            name: name.to_os_string(),
            above: above.to_path_buf(),
            directory,
        };
        output.try_it().map_err(|failed| cannot(failed.to_string()))?;
        Ok(output)
    }

    /// Whether a file can be made there: learned is soon, and written last.
    fn try_it(&self) -> Result<(), SyscallError> {
        let name = OsString::from(memory::random_name(".sbx-learn-")?);
        drop(file::create_new(self.directory.as_fd(), &name, 0o600)?);
        file::unlink(self.directory.as_fd(), &name)
    }

    /// Whether it lies in a directory, given by its real path.
    pub fn is_in(&self, directory: &Path) -> bool {
        is_within(&canonical(&self.above), directory)
    }

    /// Writes it, whole or not at all. What has the name is replaced, and not followed. An error where the path leads
    /// elsewhere by now: what is there may be the command's.
    pub fn write(&self, text: &str) -> Result<(), Refusal> {
        let (directory, path) = (self.directory.as_fd(), shown(&self.path));
        let written = file::replace(directory, &self.name, text.as_bytes(), 0o644);
        written.map_err(|failed| Refusal::new(format!("cannot write the profile '{path}': {failed}")))?;
        match file::leads_to(&self.above, directory) {
            true => Ok(()),
            false => Err(Refusal::new(format!(
                "cannot write the profile '{path}': its directory was moved or replaced meanwhile, and the profile \
                 went along with it; what is at that path now may be the command's: do not use it"
            ))),
        }
    }
}
