//! Follows a file to the program that the kernel would start for it.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::access::{self, Obstacle};
use super::elf::{self, Facts, Image};
use super::error::ExamineError;
use super::kind::{Kind, Link, Program, SetId};
use super::{loader, script, sys};

/// So many scripts may stand between a command and the program; the kernel refuses the next with ELOOP.
const MOST_SCRIPTS: usize = 5;

/// Read at once. Header, segments and the loader's name of an ordinary program all lie in it.
const HEAD: usize = 4096;

/// Tells what `path` is. Relative names mean what they mean to this process.
pub fn examine(path: &Path) -> Result<Program, ExamineError> {
    examine_from(path, Path::new(""))
}

/// As [`examine`], for a process whose working directory is `cwd`: the kernel takes a script's interpreter, when
/// its path is relative, from there.
pub fn examine_from(path: &Path, cwd: &Path) -> Result<Program, ExamineError> {
    let mut chain: Vec<Link> = Vec::with_capacity(2);
    let mut next = cwd.join(path);
    loop {
        let seen = Seen::open(&next).map_err(|failure| failure.at(&next, chain.last()))?;
        let kind = seen.kind(&next, cwd)?;
        let interpreter = match &kind {
            Kind::Script { interpreter, .. } => Some(cwd.join(interpreter)),
            _ => None,
        };
        chain.push(Link { path: next, kind });
        let Some(interpreter) = interpreter else {
            let last = chain.last().map(|link| link.path.as_path()).unwrap_or(path);
            let set_id = set_id(&seen.metadata);
            let file_capabilities = seen.capabilities(last)?;
            return Ok(Program { path: cwd.join(path), chain, set_id, file_capabilities });
        };
        if chain.len() > MOST_SCRIPTS {
            return Err(ExamineError::TooDeep { path: cwd.join(path) });
        }
        next = interpreter;
    }
}

/// Why a file could not be looked at, before it is known whose fault that is.
enum Failure {
    Obstacle(Obstacle),
    Read(io::Error),
}

impl Failure {
    /// The error for the file `path`, which `script`, if any, names as its interpreter.
    fn at(self, path: &Path, script: Option<&Link>) -> ExamineError {
        let failure = match self {
            Self::Obstacle(obstacle) => Self::Obstacle(obstacle.look_for_link(path)),
            read => read,
        };
        let path = path.to_owned();
        match (failure, script) {
            (Self::Obstacle(obstacle), None) => ExamineError::Unusable { path, obstacle },
            (Self::Obstacle(obstacle), Some(script)) => {
                ExamineError::Interpreter { path: script.path.clone(), interpreter: path, obstacle }
            }
            (Self::Read(error), _) => ExamineError::Unreadable { path, error },
        }
    }
}

/// One executable file, opened where it may be.
struct Seen {
    metadata: Metadata,
    /// Nothing if it may be executed but not read.
    content: Option<Content>,
}

struct Content {
    file: File,
    head: Vec<u8>,
}

impl Seen {
    fn open(path: &Path) -> Result<Self, Failure> {
        // Before the open, since to open a device can be an act in itself.
        let metadata = access::executable(path).map_err(Failure::Obstacle)?;
        // What was a file may be a FIFO by now; O_NONBLOCK keeps its open from waiting for a writer.
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Self { metadata, content: None });
            }
            Err(error) => return Err(Failure::Obstacle(Obstacle::from_io(error))),
        };
        let metadata = file.metadata().map_err(Failure::Read)?;
        if !metadata.is_file() {
            return Err(Failure::Obstacle(Obstacle::Special));
        }
        let head = read_head(&file, metadata.size()).map_err(Failure::Read)?;
        Ok(Self { metadata, content: Some(Content { file, head }) })
    }

    fn kind(&self, path: &Path, cwd: &Path) -> Result<Kind, ExamineError> {
        let Some(Content { file, head }) = &self.content else { return Ok(Kind::Unreadable) };
        if elf::is_elf(head) {
            let read_at = |buffer: &mut [u8], offset: u64| file.read_at(buffer, offset);
            let image = Image { head, size: self.metadata.size(), read_at: &read_at };
            let facts = elf::inspect(&image)
                .map_err(|reason| ExamineError::Malformed { path: path.to_owned(), reason })?;
            return self.elf_kind(facts, path, cwd);
        }
        if script::is_script(head) {
            let line = script::parse(head)
                .map_err(|reason| ExamineError::Script { path: path.to_owned(), reason })?;
            return Ok(Kind::Script { interpreter: line.interpreter, argument: line.argument });
        }
        Err(ExamineError::UnknownFormat { path: path.to_owned(), empty: head.is_empty() })
    }

    /// What the file's own bytes tell, together with what this system has.
    fn elf_kind(&self, facts: Facts, path: &Path, cwd: &Path) -> Result<Kind, ExamineError> {
        Ok(match facts {
            Facts::Interpreted { interpreter } => loader_kind(path, interpreter, cwd)?,
            Facts::FixedAddress => Kind::Static,
            Facts::AnyAddress { .. } if loader::is_loader(path, &self.metadata) => Kind::Loader,
            Facts::AnyAddress { marked_program: true } => Kind::StaticPie,
            Facts::AnyAddress { marked_program: false } => Kind::SharedObject,
            Facts::OtherClass(class) => Kind::OtherClass { class },
            Facts::OtherArchitecture { machine } => Kind::OtherArchitecture { machine },
        })
    }

    fn capabilities(&self, path: &Path) -> Result<bool, ExamineError> {
        let answer = match &self.content {
            Some(content) => sys::has_capabilities(&content.file),
            None => sys::path_has_capabilities(path),
        };
        answer.map_err(|error| ExamineError::Unreadable { path: path.to_owned(), error })
    }
}

/// Tells this system's loaders from others. A loader that cannot be executed is an error: so would the exec be.
fn loader_kind(path: &Path, interpreter: PathBuf, cwd: &Path) -> Result<Kind, ExamineError> {
    match access::executable(&cwd.join(&interpreter)) {
        Ok(metadata) if loader::is_known(&interpreter, &metadata) => Ok(Kind::Dynamic { interpreter }),
        Ok(_) => Ok(Kind::ForeignLoader { interpreter }),
        Err(obstacle) => {
            let obstacle = obstacle.look_for_link(&cwd.join(&interpreter));
            Err(ExamineError::Loader { path: path.to_owned(), interpreter, obstacle })
        }
    }
}

/// The first [`HEAD`] bytes, or all there are.
fn read_head(file: &File, size: u64) -> io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD];
    let mut done = 0;
    while done < HEAD {
        match file.read_at(&mut head[done..], done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // Saves the read that would only say so.
        if done as u64 == size {
            break;
        }
    }
    head.truncate(done);
    Ok(head)
}

/// What the mode asks for. Without the group's execute bit, the group bit means locking, not set-group-ID.
fn set_id(metadata: &Metadata) -> Option<SetId> {
    let mode = metadata.mode();
    let user = (mode & libc::S_ISUID != 0).then(|| metadata.uid());
    let both = libc::S_ISGID | libc::S_IXGRP;
    let group = (mode & both == both).then(|| metadata.gid());
    (user.is_some() || group.is_some()).then_some(SetId { user, group })
}
