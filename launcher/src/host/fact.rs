//! A fact about this machine that is read when it is first asked for.

use std::cell::OnceCell;

/// Most runs need few of the facts, and reading one takes system calls.
pub struct Fact<T> {
    known: OnceCell<T>,
    read: fn() -> T,
}

impl<T> Fact<T> {
    /// Reads it by this function.
    pub const fn read_by(read: fn() -> T) -> Fact<T> {
        Fact { known: OnceCell::new(), read }
    }

    /// Hands in a value instead; for tests.
    pub fn known(self, value: T) -> Fact<T> {
        Fact { known: OnceCell::from(value), ..self }
    }

    /// Whether it was asked for.
    pub fn is_read(&self) -> bool {
        self.known.get().is_some()
    }

    /// The value.
    pub fn get(&self) -> &T {
        self.known.get_or_init(self.read)
    }
}
