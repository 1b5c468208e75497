//! The other names of a file: what is mounted at several places is the same file at each. Landlock's rules
//! are about files and hold for all of these names, while a mount covers one of them.

use crate::sys::number::FileNumber;
use crate::sys::within::{is_within, rest_below};
use crate::sys::{mounted, path, plain as plain_error};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What is mounted where, as far as a file system is mounted more than once.
#[derive(Clone, Debug, Default)]
pub struct Mounts(Vec<Mount>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// The file system, by the number of its device.
    device: Vec<u8>,
    /// Which of its directories (or files) is mounted.
    root: PathBuf,
    /// Where.
    at: PathBuf,
}

impl Mount {
    fn of(mounted::Place { device: [major, minor], root, at }: mounted::Place) -> Mount {
        Mount { device: format!("{major}:{minor}").into_bytes(), root, at }
    }
}

impl Mounts {
    /// As this process sees them. Where there is no /proc, nobody tells.
    pub fn now() -> Result<Mounts, String> {
        const FILE: &str = "/proc/self/mountinfo";
        if let Some(places) = mounted::twice() {
            return Ok(Mounts(places.into_iter().map(Mount::of).collect()));
        }
        match read(FILE) {
            Ok(text) => Ok(Mounts::parse(&text)),
            Err(error) if path::says_missing(&error) => Ok(Mounts::default()),
            Err(error) => Err(format!(
                "cannot find out by which names a path is reached that is denied or protected: \
                 cannot read '{FILE}': {}",
                plain_error(&error)
            )),
        }
    }

    /// From the text of proc_pid_mountinfo(5).
    fn parse(text: &[u8]) -> Mounts {
        let lines: Vec<[&[u8]; 3]> = text.split(|byte| *byte == b'\n').filter_map(fields).collect();
        let mut devices: Vec<&[u8]> = lines.iter().map(|[device, ..]| *device).collect();
        devices.sort_unstable();
        let is_twice = |device: &[u8]| {
            let first = devices.partition_point(|other| *other < device);
            devices.get(first + 1).is_some_and(|next| *next == device)
        };
        let twice = lines.iter().filter(|[device, ..]| is_twice(device));
        let mount = |[device, root, at]: &[&[u8]; 3]| Mount {
            device: device.to_vec(),
            root: plain(root),
            at: plain(at),
        };
        Mounts(twice.map(mount).collect())
    }

    /// The other names of what is at a path, or would be, as far as they lead there: something else may be
    /// mounted above them.
    pub fn other_names(&self, path: &Path) -> Vec<PathBuf> {
        self.ways(path, |inside, other| {
            let below = rest_below(inside, &other.root)?;
            let name = join(&other.at, below);
            (name != path && are_one(path, &name)).then_some(name)
        })
    }

    /// All ways to what is at a path or below it that do not lead through the path: its other names, and the
    /// places where a part of it is mounted.
    pub fn ways_around(&self, path: &Path) -> Vec<PathBuf> {
        let mut ways = self.other_names(path);
        let parts = self.ways(path, |inside, part| {
            let below = part.root.strip_prefix(inside).ok().filter(|below| !below.as_os_str().is_empty())?;
            let apart = !is_within(&part.at, path) && are_one(&path.join(below), &part.at);
            apart.then(|| part.at.clone())
        });
        ways.extend(parts);
        ways
    }

    /// Each way that is found from a place in a file system, to which a path leads, and from another mount of that.
    fn ways(&self, path: &Path, found: impl Fn(&Path, &Mount) -> Option<PathBuf>) -> Vec<PathBuf> {
        let mut ways = Vec::new();
        for own in self.0.iter().filter(|mount| is_within(path, &mount.at)) {
            let Some(below) = rest_below(path, &own.at) else { continue };
            let inside = join(&own.root, below);
            // On a machine with containers there are hundreds, and this is the quick question.
            let related = |mount: &&Mount| is_within(&inside, &mount.root) || is_within(&mount.root, &inside);
            let others = self.0.iter().filter(|other| other.device == own.device && *other != own);
            for way in others.filter(related).filter_map(|other| found(&inside, other)) {
                if !ways.contains(&way) {
                    ways.push(way);
                }
            }
        }
        ways
    }
}

/// Without the slash that joining nothing leaves at the end, which a file cannot have.
fn join(directory: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { directory.to_path_buf() } else { directory.join(below) }
}

/// The whole of a file of /proc, in few calls.
fn read(file: &str) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(16 << 10);
    File::open(file)?.read_to_end(&mut text)?;
    Ok(text)
}

/// Device, root and place of a line.
fn fields(line: &[u8]) -> Option<[&[u8]; 3]> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    Some([fields.next()?, fields.next()?, fields.next()?])
}

/// A name in which blanks, tabs, line feeds and backslashes are written as three octal digits.
fn plain(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, more)) = rest.split_first() {
        let number = rest.get(1..4).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped =
            number.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\');
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { rest.get(4..).unwrap_or(&[]) } else { more };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Whether both names lead to one file. Of what is not there, its directory tells; what cannot be looked at by either
/// name is taken for one.
fn are_one(one: &Path, other: &Path) -> bool {
    let (mut one, mut other) = (one, other);
    loop {
        match (one.symlink_metadata(), other.symlink_metadata()) {
            (Ok(a), Ok(b)) => return FileNumber::of(&a) == FileNumber::of(&b),
            (Err(a), Err(b)) if path::says_missing(&a) && path::says_missing(&b) => {}
            (Err(a), Err(b)) => return !path::says_missing(&a) && !path::says_missing(&b),
            _ => return false,
        }
        match (one.parent(), other.parent()) {
            (Some(a), Some(b)) => (one, other) = (a, b),
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"22 27 0:21 / /proc rw - proc proc rw\n27 1 254:0 / / rw - ext4 /dev/vda rw\n\
        30 27 254:0 /srv/da\\040ta /home rw shared:1 - ext4 /dev/vda rw\n31 27 0:40 /@a /mnt rw - btrfs x rw\n";

    #[test]
    fn a_file_system_that_is_mounted_twice_is_known_by_its_places() {
        let mounts = Mounts::parse(TEXT).0;
        let places: Vec<_> = mounts.iter().map(|mount| (&*mount.root, &*mount.at)).collect();
        assert_eq!(places, [(Path::new("/"), Path::new("/")), (Path::new("/srv/da ta"), Path::new("/home"))]);
    }

    /// Where the kernel tells of one mount after the other.
    #[test]
    fn both_ways_to_ask_the_kernel_find_the_same() {
        let Some(places) = mounted::twice() else { return };
        let sorted = |mut mounts: Vec<Mount>| {
            mounts.sort_by(|one, other| (&one.at, &one.root).cmp(&(&other.at, &other.root)));
            mounts
        };
        let text = read("/proc/self/mountinfo").unwrap();
        let written = Mounts::parse(&text).0;
        assert_eq!(sorted(places.into_iter().map(Mount::of).collect()), sorted(written));
    }

    #[test]
    fn names_are_read_as_the_kernel_writes_them() {
        let names = [
            (&b"/a\\040b\\134c"[..], "/a b\\c"),
            (b"/a\\012", "/a\n"),
            (b"/\\04", "/\\04"),
            (b"/\\999", "/\\999"),
        ];
        for (field, name) in names {
            assert_eq!(plain(field), Path::new(name));
        }
    }

    #[test]
    fn only_what_leads_to_the_same_file_is_another_name() {
        let directory = std::env::temp_dir().join(format!("sbx-names-{}", std::process::id()));
        let [one, other, link] = ["one", "other", "link"].map(|name| directory.join(name));
        std::fs::create_dir_all(one.join("below")).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        std::os::unix::fs::symlink("one", &link).unwrap();
        let of = |at: &Path| Mount { device: b"8:1".to_vec(), root: "/".into(), at: at.into() };
        let names = |mounts: [&Path; 2], name| Mounts(mounts.map(of).to_vec()).other_names(&one.join(name));
        // A link to a directory stands for the same mounted twice.
        std::fs::write(one.join("file"), "").unwrap();
        assert_eq!(names([&one, &link], "file"), [link.join("file")]);
        assert_eq!(names([&one, &link], "below/missing"), [link.join("below/missing")]);
        assert!(names([&one, &other], "file").is_empty());
        assert!(names([&one, &other], "missing").is_empty());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
