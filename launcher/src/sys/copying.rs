//! Copying and comparing memory, for the static builds: musl has a loop over single bytes for the one, and an
//! instruction that begins slowly for the other. A start copies and compares some thousand names of a few bytes each.
//!
//! They take the place of musl's by their names. Nothing here needs a processor's extensions, or asks for them.

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.sbx_copying, \"ax\", @progbits",
    // Forwards, so it may be used where what is written lies before what is read. Overlapping loads at both ends are
    // made before anything is stored.
    ".globl sbx_copy",
    ".type sbx_copy, @function",
    "sbx_copy:",
    "mov rax, rdi",
    "cmp rdx, 16",
    "jb 2f",
    "cmp rdx, 256",
    "ja 5f",
    "movups xmm0, [rsi + rdx - 16]",
    "lea rcx, [rdi + rdx - 16]",
    "1: movups xmm1, [rsi]",
    "movups [rdi], xmm1",
    "add rsi, 16",
    "add rdi, 16",
    "cmp rdi, rcx",
    "jb 1b",
    "movups [rcx], xmm0",
    "ret",
    "2: cmp edx, 8",
    "jb 3f",
    "mov r8, [rsi]",
    "mov r9, [rsi + rdx - 8]",
    "mov [rdi], r8",
    "mov [rdi + rdx - 8], r9",
    "ret",
    "3: cmp edx, 4",
    "jb 4f",
    "mov r8d, [rsi]",
    "mov r9d, [rsi + rdx - 4]",
    "mov [rdi], r8d",
    "mov [rdi + rdx - 4], r9d",
    "ret",
    "4: test edx, edx",
    "jz 6f",
    "mov rcx, rdx",
    "shr rcx, 1",
    "movzx r8d, byte ptr [rsi]",
    "movzx r9d, byte ptr [rsi + rcx]",
    "movzx r10d, byte ptr [rsi + rdx - 1]",
    "mov [rdi], r8b",
    "mov [rdi + rcx], r9b",
    "mov [rdi + rdx - 1], r10b",
    "ret",
    "5: mov rcx, rdx",
    "rep movsb",
    "6: ret",
    ".size sbx_copy, . - sbx_copy",
    // Where what is written begins within what is read, from the end.
    ".globl sbx_move",
    ".type sbx_move, @function",
    "sbx_move:",
    "mov rcx, rdi",
    "sub rcx, rsi",
    "cmp rcx, rdx",
    "jae sbx_copy",
    "mov rax, rdi",
    "1: cmp rdx, 8",
    "jb 2f",
    "sub rdx, 8",
    "mov r8, [rsi + rdx]",
    "mov [rdi + rdx], r8",
    "jmp 1b",
    "2: test rdx, rdx",
    "jz 3f",
    "dec rdx",
    "movzx r8d, byte ptr [rsi + rdx]",
    "mov [rdi + rdx], r8b",
    "jmp 2b",
    "3: ret",
    ".size sbx_move, . - sbx_move",
    // The sign of the first difference of bytes.
    ".globl sbx_compare",
    ".type sbx_compare, @function",
    "sbx_compare:",
    "xor r8d, r8d",
    "cmp rdx, 8",
    "jb 3f",
    "lea rcx, [rdx - 8]",
    "1: mov rax, [rdi + r8]",
    "mov r9, [rsi + r8]",
    "cmp rax, r9",
    "jne 2f",
    "add r8, 8",
    "cmp r8, rcx",
    "jbe 1b",
    "mov rax, [rdi + rcx]",
    "mov r9, [rsi + rcx]",
    "cmp rax, r9",
    "je 5f",
    "2: bswap rax",
    "bswap r9",
    "cmp rax, r9",
    "sbb eax, eax",
    "or eax, 1",
    "ret",
    "3: cmp r8, rdx",
    "je 5f",
    "4: movzx eax, byte ptr [rdi + r8]",
    "movzx r9d, byte ptr [rsi + r8]",
    "inc r8",
    "sub eax, r9d",
    "jne 6f",
    "cmp r8, rdx",
    "jb 4b",
    "5: xor eax, eax",
    "6: ret",
    ".size sbx_compare, . - sbx_compare",
    ".popsection",
);

// musl's memmove(3) is in its memcpy(3), so all of them are taken.
#[cfg(all(target_arch = "x86_64", target_env = "musl"))]
std::arch::global_asm!(
    ".globl memcpy, memmove, memcmp, bcmp",
    ".set memcpy, sbx_copy",
    ".set memmove, sbx_move",
    ".set memcmp, sbx_compare",
    ".set bcmp, sbx_compare",
);

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use crate::testing::Random;

    unsafe extern "C" {
        fn sbx_copy(to: *mut u8, from: *const u8, length: usize) -> *mut u8;
        fn sbx_move(to: *mut u8, from: *const u8, length: usize) -> *mut u8;
        fn sbx_compare(one: *const u8, other: *const u8, length: usize) -> i32;
    }

    #[test]
    fn every_length_is_copied_and_nothing_beside() {
        for length in 0..600 {
            for (from, to) in [(0, 0), (1, 0), (3, 5), (8, 15)] {
                let source: Vec<u8> = (0..700_u32).map(|index| (index * 7 % 251) as u8).collect();
                let mut target = vec![0xff; 700];
                let at = target[to..].as_mut_ptr();
                // SAFETY: both ranges lie in their vectors.
                let returned = unsafe { sbx_copy(at, source[from..].as_ptr(), length) };
                assert_eq!(returned, at);
                assert_eq!(target[to..to + length], source[from..from + length], "{length}");
                assert!(
                    target[..to].iter().chain(&target[to + length..]).all(|byte| *byte == 0xff),
                    "{length}"
                );
            }
        }
    }

    #[test]
    fn both_may_overlap() {
        for length in 0..600 {
            for distance in [0, 1, 2, 7, 8, 15, 16, 17, 100] {
                let bytes: Vec<u8> = (0..800_u32).map(|index| (index * 7 % 251) as u8).collect();
                let (mut down, mut up) = (bytes.clone(), bytes.clone());
                // SAFETY: the ranges lie in the vectors.
                let returned = unsafe { sbx_move(down.as_mut_ptr(), down.as_ptr().add(distance), length) };
                assert_eq!(returned, down.as_mut_ptr());
                assert_eq!(down[..length], bytes[distance..distance + length], "{length} {distance}");
                assert_eq!(down[length..], bytes[length..]);
                // SAFETY: as above.
                let returned = unsafe { sbx_move(up.as_mut_ptr().add(distance), up.as_ptr(), length) };
                assert_eq!(returned, up[distance..].as_mut_ptr());
                assert_eq!(up[distance..distance + length], bytes[..length], "{length} {distance}");
                assert_eq!(up[..distance], bytes[..distance]);
                assert_eq!(up[distance + length..], bytes[distance + length..]);
            }
        }
    }

    #[test]
    fn what_differs_is_ordered_as_slices_are() {
        let mut random = Random(7);
        for length in 0..200 {
            for _ in 0..50 {
                let one: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
                let mut other = one.clone();
                for _ in 0..random.below(3).min(length) {
                    other[random.below(length)] = random.below(256) as u8;
                }
                // SAFETY: both have this length.
                let compared = unsafe { sbx_compare(one.as_ptr(), other.as_ptr(), length) };
                assert_eq!(compared.cmp(&0), one.cmp(&other), "{one:?} {other:?}");
            }
        }
    }
}
