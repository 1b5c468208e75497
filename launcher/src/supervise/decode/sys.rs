//! Reading the memory of a process that waits for an answer to its system call.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

use super::Memory;
use crate::supervise::patience;

const PAGE: u64 = 4096;

/// The memory of one process, through `process_vm_readv(2)` or else `/proc/PID/mem`: the first may be refused by a filter around
/// this process, the second may be hidden.
///
/// A process number can be given to another process meanwhile. Who acts on what was read asks the kernel afterwards whether the
/// notification is still valid.
#[derive(Clone, Debug)]
pub struct ProcessMemory {
    pid: libc::pid_t,
    /// Opened when first needed.
    file: Arc<OnceLock<Option<File>>>,
}

impl ProcessMemory {
    /// The memory of the process (or thread) `pid`, as numbered in our own process namespace.
    #[must_use]
    pub fn new(pid: libc::pid_t) -> Self {
        Self { pid, file: Arc::default() }
    }

    fn read_now(&self, address: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        // A page at a time, so that what lies before a hole is read.
        while done < buffer.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let left_in_page = (PAGE - at % PAGE) as usize;
            let end = buffer.len().min(done + left_in_page);
            let count = self.read_piece(at, &mut buffer[done..end]);
            done += count;
            if done < end {
                break;
            }
        }
        done
    }

    fn read_piece(&self, address: u64, buffer: &mut [u8]) -> usize {
        match self.copy(address, buffer) {
            0 => self.read_file(address, buffer),
            count => count,
        }
    }

    /// Bytes that `process_vm_readv` copied, 0 if it failed.
    fn copy(&self, address: u64, buffer: &mut [u8]) -> usize {
        let Ok(address) = usize::try_from(address) else { return 0 };
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote =
            libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: buffer.len() };
        // SAFETY: one vector each; `local` covers exactly `buffer`, which we borrow mutably; the kernel checks the remote side.
        let count = unsafe { libc::process_vm_readv(self.pid, &raw const local, 1, &raw const remote, 1, 0) };
        usize::try_from(count).unwrap_or(0)
    }

    pub(super) fn read_file(&self, address: u64, buffer: &mut [u8]) -> usize {
        let file = self.file.get_or_init(|| File::open(format!("/proc/{}/mem", self.pid)).ok());
        file.as_ref().and_then(|file| file.read_at(buffer, address).ok()).unwrap_or(0)
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let (memory, mut bytes) = (self.clone(), vec![0; buffer.len()]);
        // Other threads of the process can keep its memory locked. What cannot be had in time counts as unreadable.
        let read = patience::within(move || {
            let count = memory.read_now(address, &mut bytes);
            bytes.truncate(count);
            bytes
        });
        let read = read.unwrap_or_default();
        buffer.iter_mut().zip(&read).for_each(|(to, from)| *to = *from);
        read.len()
    }
}
