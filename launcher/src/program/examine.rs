//! Follows a file to the program that the kernel would start for it.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::mem;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::program::access::{self, Obstacle};
use crate::program::elf::{self, Facts, Image};
use crate::program::error::{ProgramCause, ProgramError};
use crate::program::kind::{FileKind, Link, Program, SetId};
use crate::program::{loader, script};
use crate::sys::executable;

/// The maximum number of scripts between a command and the program. The kernel refuses the next with ELOOP.
const MOST_SCRIPTS: usize = 5;

/// The number of bytes that are read at once: header, segments and loader's name of an ordinary program.
const HEAD: usize = 4096;

/// Tells what `path` is, relative to the working directory of this process.
pub fn examine(path: &Path) -> Result<Program, ProgramError> {
    examine_from(path, Path::new(""))
}

/// The same for a process that works in `cwd`, where the relative path of a script's interpreter begins.
pub fn examine_from(path: &Path, cwd: &Path) -> Result<Program, ProgramError> {
    let mut chain: Vec<Link> = Vec::with_capacity(2);
    let mut next = cwd.join(path);
    loop {
        let seen = Seen::open(&next).map_err(|cause| blame(cause, &next, chain.last()))?;
        let kind = seen.kind(&next, cwd).map_err(|cause| ProgramError::new(&next, cause))?;
        if let FileKind::Script { interpreter, .. } = &kind {
            if chain.len() >= MOST_SCRIPTS {
                return Err(ProgramError::new(cwd.join(path), ProgramCause::TooDeep));
            }
            let script = mem::replace(&mut next, cwd.join(interpreter));
            chain.push(Link { path: script, kind });
            continue;
        }
        let capabilities = seen.capabilities(&next).map_err(ProgramCause::Unreadable);
        let file_capabilities = capabilities.map_err(|cause| ProgramError::new(&next, cause))?;
        chain.push(Link { path: next, kind });
        return Ok(Program {
            path: cwd.join(path),
            chain,
            set_id: set_id(&seen.metadata),
            file_capabilities,
        });
    }
}

/// The error for the file `path`, which `script`, if any, names as its interpreter.
fn blame(cause: ProgramCause, path: &Path, script: Option<&Link>) -> ProgramError {
    let ProgramCause::Obstacle(obstacle) = cause else { return ProgramError::new(path, cause) };
    let obstacle = obstacle.look_for_link(path);
    match script {
        None => ProgramError::new(path, obstacle),
        Some(script) => {
            let interpreter = path.to_owned();
            ProgramError::new(&script.path, ProgramCause::Interpreter { interpreter, obstacle })
        }
    }
}

/// One executable file, opened where it may be.
struct Seen {
    metadata: Metadata,
    /// `None` if it may be executed but not read.
    content: Option<(File, Vec<u8>)>,
}

impl Seen {
    fn open(path: &Path) -> Result<Self, ProgramCause> {
        // Before the open, since to open a device can be an act in itself.
        let metadata = access::executable(path)?;
        // The file may be a FIFO by now; O_NONBLOCK keeps its open from waiting for a writer.
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Self { metadata, content: None });
            }
            Err(error) => return Err(Obstacle::from_io(error).into()),
        };
        let metadata = file.metadata().map_err(ProgramCause::Unreadable)?;
        if !metadata.is_file() {
            return Err(Obstacle::Special.into());
        }
        let head = read_head(&file, metadata.size()).map_err(ProgramCause::Unreadable)?;
        Ok(Self { metadata, content: Some((file, head)) })
    }

    fn kind(&self, path: &Path, cwd: &Path) -> Result<FileKind, ProgramCause> {
        let Some((file, head)) = &self.content else { return Ok(FileKind::Unreadable) };
        if elf::is_elf(head) {
            let read_at = |buffer: &mut [u8], offset: u64| file.read_at(buffer, offset);
            let image = Image { head, size: self.metadata.size(), read_at: &read_at };
            return self.elf_kind(elf::inspect(&image)?, path, cwd);
        }
        if script::is_script(head) {
            let line = script::parse(head)?;
            return Ok(FileKind::Script { interpreter: line.interpreter, argument: line.argument });
        }
        Err(if head.is_empty() {
            ProgramCause::EmptyFile
        } else {
            ProgramCause::UnknownFormat(path.to_owned())
        })
    }

    /// Combines the file's own bytes with what this system has.
    fn elf_kind(&self, facts: Facts, path: &Path, cwd: &Path) -> Result<FileKind, ProgramCause> {
        Ok(match facts {
            Facts::Interpreted { interpreter } => loader_kind(interpreter, cwd)?,
            Facts::FixedAddress => FileKind::Static,
            Facts::AnyAddress { .. } if loader::is_loader(path, &self.metadata) => FileKind::Loader,
            Facts::AnyAddress { marked_program: true } => FileKind::StaticPie,
            Facts::AnyAddress { marked_program: false } => FileKind::SharedObject,
            Facts::OtherClass(class) => FileKind::OtherClass { class },
            Facts::OtherArchitecture { machine } => FileKind::OtherArchitecture { machine },
        })
    }

    fn capabilities(&self, path: &Path) -> io::Result<bool> {
        match &self.content {
            Some((file, _)) => executable::has_capabilities(file),
            None => executable::path_has_capabilities(path),
        }
    }
}

/// Tells this system's loaders from others. If a loader cannot be executed, the exec would fail.
fn loader_kind(interpreter: PathBuf, cwd: &Path) -> Result<FileKind, ProgramCause> {
    let path = cwd.join(&interpreter);
    match access::executable(&path) {
        Ok(metadata) if loader::is_known(&interpreter, &metadata) => Ok(FileKind::Dynamic { interpreter }),
        Ok(_) => Ok(FileKind::ForeignLoader { interpreter }),
        Err(obstacle) => {
            Err(ProgramCause::Loader { loader: interpreter, obstacle: obstacle.look_for_link(&path) })
        }
    }
}

/// The first [`HEAD`] bytes, or all there are. Some file systems do not know the size, and say 0.
fn read_head(file: &File, size: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(size).ok().filter(|size| (1..HEAD).contains(size)).unwrap_or(HEAD);
    let mut head = vec![0; length];
    let count = elf::read_full(&|buffer, offset| file.read_at(buffer, offset), &mut head, 0)?;
    head.truncate(count);
    Ok(head)
}

/// The set-ID bits of the mode. Without the group's execute bit, the group bit is about locking.
fn set_id(metadata: &Metadata) -> Option<SetId> {
    let mode = metadata.mode();
    let user = (mode & libc::S_ISUID != 0).then(|| metadata.uid());
    let both = libc::S_ISGID | libc::S_IXGRP;
    let group = (mode & both == both).then(|| metadata.gid());
    (user.is_some() || group.is_some()).then_some(SetId { user, group })
}
