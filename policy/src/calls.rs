//! System calls by name and number, groups of them, and the nearest name to a mistyped one.

use crate::bpf::Insn;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// A group of system calls, `@name`: its place in the table of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(u8);

/// An architecture whose system calls are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Arch {
    /// The architecture this code is compiled for.
    #[cfg(target_arch = "x86_64")]
    pub const HOST: Arch = Arch::X86_64;
    /// The architecture this code is compiled for.
    #[cfg(target_arch = "aarch64")]
    pub const HOST: Arch = Arch::Aarch64;

    /// `AUDIT_ARCH_*` (linux/audit.h).
    pub const fn audit(self) -> u32 {
        match self {
            Arch::X86_64 => 0xc000_003e,
            Arch::Aarch64 => 0xc000_00b7,
        }
    }

    /// The numbers, by place of the name. To stay small, the shim knows only its own architecture.
    fn numbers(self) -> &'static [u16] {
        match self {
            #[cfg(any(feature = "std", target_arch = "x86_64"))]
            Arch::X86_64 => &X86_64,
            #[cfg(any(feature = "std", target_arch = "aarch64"))]
            Arch::Aarch64 => &AARCH64,
            #[cfg(not(feature = "std"))]
            _ => &[],
        }
    }

    /// One more than the highest number of a known system call.
    pub const fn end(self) -> u32 {
        match self {
            #[cfg(any(feature = "std", target_arch = "x86_64"))]
            Arch::X86_64 => const { end_of(&X86_64) },
            #[cfg(any(feature = "std", target_arch = "aarch64"))]
            Arch::Aarch64 => const { end_of(&AARCH64) },
            #[cfg(not(feature = "std"))]
            _ => 0,
        }
    }
}

/// One more than the highest of these numbers. `u16::MAX` stands for system calls that the architecture does not have.
const fn end_of(numbers: &[u16]) -> u32 {
    let (mut end, mut place) = (0, 0);
    while place < numbers.len() {
        let number = numbers[place];
        if number != u16::MAX && number as u32 >= end {
            end = number as u32 + 1;
        }
        place += 1;
    }
    end
}

/// The first letter of the first name, _sysctl.
const FIRST: u8 = b'_';
/// The place of the first name of each letter. The names are sorted.
const LETTERS: [u16; (b'z' - FIRST) as usize + 2] = {
    let mut starts = [0; (b'z' - FIRST) as usize + 2];
    let mut place = 0;
    while place < COUNT {
        let letter = (NAMES.as_bytes()[OFFSETS[place] as usize] - FIRST) as usize;
        place += 1;
        let mut later = letter + 1;
        while later < starts.len() {
            starts[later] = place as u16;
            later += 1;
        }
    }
    starts
};

/// A system call: its place in the table of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call(u16);

impl Call {
    /// The system call of this name, as in man-pages.
    pub fn named(name: &[u8]) -> Option<Call> {
        let letter = usize::from(name.first()?.checked_sub(FIRST)?);
        let mut low = *LETTERS.get(letter)?;
        let mut high = *LETTERS.get(letter + 1)?;
        while low < high {
            let middle = low + (high - low) / 2;
            match Call(middle).bytes().cmp(name) {
                core::cmp::Ordering::Less => low = middle + 1,
                core::cmp::Ordering::Greater => high = middle,
                core::cmp::Ordering::Equal => return Some(Call(middle)),
            }
        }
        None
    }

    fn bytes(self) -> &'static [u8] {
        let index = usize::from(self.0);
        let (start, end) = (OFFSETS.get(index).copied(), OFFSETS.get(index + 1).copied());
        let range = start.zip(end).map(|(start, end)| usize::from(start)..usize::from(end));
        range.and_then(|range| NAMES.as_bytes().get(range)).unwrap_or(&[])
    }

    /// The system call of this number.
    pub fn numbered(arch: Arch, number: u32) -> Option<Call> {
        let number = u16::try_from(number).ok().filter(|n| *n != u16::MAX)?;
        arch.numbers().iter().position(|n| *n == number).map(|index| Call(index as u16))
    }

    /// The system call at this place of the table of names. Generated tables use it.
    pub const fn at(place: u16) -> Call {
        Call(place)
    }

    /// Its place in the table of names.
    pub const fn place(self) -> u16 {
        self.0
    }

    /// All system calls of all architectures, sorted by name.
    pub fn all() -> impl Iterator<Item = Call> {
        (0..COUNT as u16).map(Call)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        slice(NAMES, &OFFSETS, self.0.into())
    }

    /// The number, if the architecture has the system call.
    pub fn number(self, arch: Arch) -> Option<u32> {
        let number = arch.numbers().get(usize::from(self.0)).copied()?;
        (number != u16::MAX).then_some(u32::from(number))
    }
}

impl Group {
    /// The group of this name, with the `@`.
    pub fn named(name: &[u8]) -> Option<Group> {
        Group::all().find(|group| group.name().as_bytes() == name)
    }

    /// All groups, sorted by name.
    pub fn all() -> impl Iterator<Item = Group> {
        (0..GROUP_SETS.len() as u8).map(Group)
    }

    /// The name, with the `@`.
    pub fn name(self) -> &'static str {
        slice(GROUP_NAMES, &GROUP_OFFSETS, self.0.into())
    }

    /// The purpose of the group.
    pub fn meaning(self) -> &'static str {
        GROUP_MEANINGS.get(usize::from(self.0)).copied().unwrap_or("")
    }

    /// Its system calls.
    pub fn members(self) -> impl Iterator<Item = Call> {
        Call::all().filter(move |call| self.contains(*call))
    }

    /// Whether a system call is in the group.
    pub fn contains(self, call: Call) -> bool {
        let index = usize::from(call.0);
        let set = GROUP_SETS.get(usize::from(self.0));
        set.and_then(|set| set.get(index / 8)).is_some_and(|byte| byte & (1 << (index % 8)) != 0)
    }
}

/// One of the strings that are joined in `blob`.
pub(crate) fn slice(blob: &'static str, offsets: &[u16], index: usize) -> &'static str {
    let (start, end) = (offsets.get(index).copied(), offsets.get(index + 1).copied());
    start.zip(end).and_then(|(s, e)| blob.get(usize::from(s)..usize::from(e))).unwrap_or("")
}

/// The candidate that is most similar to a mistyped name, if one is similar enough.
pub fn nearest<'a>(name: &[u8], candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.len() / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let distance = distance(name, candidate.as_bytes());
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

const LONGEST: usize = 40;

/// The number of letters to insert, remove, change, or swap with their neighbour (optimal string alignment).
fn distance(a: &[u8], b: &[u8]) -> usize {
    if a.len() >= LONGEST || b.len() >= LONGEST {
        return usize::MAX;
    }
    let mut rows = [[0_usize; LONGEST]; 3];
    rows[0].iter_mut().enumerate().for_each(|(j, cell)| *cell = j);
    for i in 1..=a.len() {
        let (now, before, earlier) = (i % 3, (i + 2) % 3, (i + 1) % 3);
        rows[now][0] = i;
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut cost = (rows[before][j - 1] + change).min(rows[before][j] + 1).min(rows[now][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                cost = cost.min(rows[earlier][j - 2] + 1);
            }
            rows[now][j] = cost;
        }
    }
    rows[a.len() % 3][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            for call in Call::all() {
                assert_eq!(Call::named(call.name().as_bytes()), Some(call));
                if let Some(number) = call.number(arch) {
                    assert_eq!(Call::numbered(arch, number), Some(call), "{}", call.name());
                }
            }
        }
        assert_eq!(Call::named(b"openat").and_then(|c| c.number(Arch::X86_64)), Some(257));
        assert_eq!(Call::named(b"openat").and_then(|c| c.number(Arch::Aarch64)), Some(56));
        assert_eq!(Call::named(b"open").and_then(|c| c.number(Arch::Aarch64)), None);
        assert_eq!(Call::named(b""), None);
        assert_eq!(Call::numbered(Arch::X86_64, 0x4000_0001), None);
    }

    #[test]
    fn a_mistyped_name_finds_its_neighbour() {
        let near = |name: &str| nearest(name.as_bytes(), Call::all().map(Call::name));
        assert_eq!(near("opnat"), Some("openat"));
        assert_eq!(near("exceve"), Some("execve"));
        assert_eq!(near("wirte"), Some("write"));
        assert_eq!(near("completely_different"), None);
        assert_eq!(near(&"x".repeat(500)), None);
    }

    #[test]
    fn groups_hold_groups() {
        let service = Group::named(b"@system-service").unwrap();
        assert!(service.contains(Call::named(b"read").unwrap()));
        assert!(!service.contains(Call::named(b"mount").unwrap()));
        assert!(Group::all().all(|g| g.members().count() > 0));
    }
}
