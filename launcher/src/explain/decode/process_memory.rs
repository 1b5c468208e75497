//! Reads the memory of a process that waits for the answer to its system call.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

use crate::explain::decode::Memory;
use crate::explain::decode::memory::PAGE;
use crate::sys::bounded;
use crate::sys::process::{self, Pid};

/// The memory of one process: read with `process_vm_readv(2)`, or else from `/proc/PID/mem`. A filter around
/// this process may refuse the first, and the second may be hidden.
///
/// The number may belong to another process by the time of the read. Whoever acts on the result asks the
/// kernel afterwards whether the notification is still valid.
#[derive(Clone, Debug)]
pub struct ProcessMemory {
    pid: Pid,
    /// `/proc/PID/mem`, opened at the first use.
    file: Arc<OnceLock<Option<File>>>,
}

impl ProcessMemory {
    /// The memory of the process or thread with this number in our own process namespace.
    #[must_use]
    pub fn new(pid: Pid) -> Self {
        Self { pid, file: Arc::default() }
    }

    /// Reads page by page: a hole ends the read, and what lies before it counts.
    fn read_now(&self, address: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buffer.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let end = buffer.len().min(done + (PAGE - at % PAGE) as usize);
            done += self.read_piece(at, &mut buffer[done..end]);
            if done < end {
                break;
            }
        }
        done
    }

    fn read_piece(&self, address: u64, buffer: &mut [u8]) -> usize {
        match process::read_memory(self.pid, address, buffer) {
            Ok(count) if count > 0 => count,
            _ => self.read_file(address, buffer),
        }
    }

    pub(super) fn read_file(&self, address: u64, buffer: &mut [u8]) -> usize {
        let file = self.file.get_or_init(|| File::open(format!("/proc/{}/mem", self.pid)).ok());
        file.as_ref().and_then(|file| file.read_at(buffer, address).ok()).unwrap_or(0)
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let (memory, mut bytes) = (self.clone(), vec![0; buffer.len()]);
        // Other threads of the process can keep its memory locked. A read that takes too long counts as failed.
        let read = bounded::within(move || {
            let count = memory.read_now(address, &mut bytes);
            bytes.truncate(count);
            bytes
        });
        let read = read.unwrap_or_default();
        buffer.iter_mut().zip(&read).for_each(|(to, from)| *to = *from);
        read.len()
    }
}
