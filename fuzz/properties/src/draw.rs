//! Draws values from a fuzzer's bytes.

/// Takes values from the front. When no bytes are left, every value is zero.
pub struct Draw<'a>(pub &'a [u8]);

impl Draw<'_> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub fn below(&mut self, end: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % end.max(1)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A number of 0 to 8 bytes, each length about equally likely.
    pub fn word(&mut self) -> u64 {
        let length = usize::from(self.byte()) % 9;
        (0..length).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }
}
