//! What is mounted, as the kernel tells it of one mount after the other (listmount(2) and statmount(2), Linux 6.8). It
//! takes long to write down all of it as text, which is mostly of no use.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The same numbers on all architectures.
const STATMOUNT: libc::c_long = 457;
const LISTMOUNT: libc::c_long = 458;

/// Most mounts that are looked at one by one.
const MOST: usize = 128;

/// Parts of what statmount(2) tells: STATMOUNT_SB_BASIC, STATMOUNT_MNT_ROOT, STATMOUNT_MNT_POINT.
const DEVICE: u64 = 1;
const ROOT: u64 = 1 << 3;
const POINT: u64 = 1 << 4;

/// Room for both texts: each is a path.
const TEXT: usize = 2 * libc::PATH_MAX as usize;

/// `struct mnt_id_req` of both calls, in its first version.
#[repr(C)]
struct Request {
    size: u32,
    spare: u32,
    mount: u64,
    wanted: u64,
}

impl Request {
    fn of(mount: u64, wanted: u64) -> Request {
        Request { size: size_of::<Request>() as u32, spare: 0, mount, wanted }
    }
}

/// The beginning of `struct statmount`.
#[repr(C)]
#[derive(Default)]
struct Found {
    size: u32,
    options: u32,
    known: u64,
    device: [u32; 2],
}

/// All of it, as far as we ask for it.
#[repr(C)]
struct Told {
    start: Found,
    _between: [u32; 20],
    root: u32,
    point: u32,
    _rest: [u32; 100],
    text: [u8; TEXT],
}

/// What the kernel may write its answer into: numbers and bytes, of which any are valid.
trait Answer {}

impl Answer for Found {}
impl Answer for Told {}

/// A mount of a file system that is mounted more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file system, by the numbers of its device.
    pub device: [u32; 2],
    /// Which of its directories (or files) is mounted.
    pub root: PathBuf,
    /// Where.
    pub at: PathBuf,
}

/// The mounts of file systems that are mounted more than once. `None` where the kernel does not tell, or there are very
/// many mounts.
pub fn twice() -> Option<Vec<Place>> {
    let mut mounts = [0_u64; MOST];
    let listed = list(&mut mounts)?;
    let mut devices = [[0; 2]; MOST];
    for (mount, device) in listed.iter().zip(&mut devices) {
        let mut found = Found::default();
        tell(*mount, DEVICE, &mut found).filter(|()| found.known & DEVICE != 0)?;
        *device = found.device;
    }
    let devices = devices.get(..listed.len())?;
    let is_twice = |device: &[u32; 2]| devices.iter().filter(|other| *other == device).count() > 1;
    let all = listed.iter().zip(devices).filter(|(_, device)| is_twice(device));
    let places = all.map(|(mount, device)| place(*mount, *device)).collect::<Option<Vec<_>>>()?;
    Some(places.into_iter().flatten().collect())
}

/// The numbers of all mounts that this process can reach.
fn list(mounts: &mut [u64; MOST]) -> Option<&[u64]> {
    /// LSMT_ROOT: from the root of the namespace on.
    const ALL: u64 = u64::MAX;
    let all = Request::of(ALL, 0);
    // SAFETY: a structure of the size it says, and room for so many numbers.
    let count = unsafe { libc::syscall(LISTMOUNT, &raw const all, mounts.as_mut_ptr(), MOST, 0) };
    let count = usize::try_from(count).ok().filter(|count| (1..MOST).contains(count))?;
    mounts.get(..count)
}

/// Has the kernel tell something of a mount, if it does.
fn tell<T: Answer>(mount: u64, wanted: u64, into: &mut T) -> Option<()> {
    let one = Request::of(mount, wanted);
    // SAFETY: a structure of the size it says, and as much room for the answer as there is.
    let result = unsafe { libc::syscall(STATMOUNT, &raw const one, &raw mut *into, size_of::<T>(), 0) };
    (result == 0).then_some(())
}

/// A mount with its places. None inside where it is out of this process's sight; none at all where it is not told.
fn place(mount: u64, device: [u32; 2]) -> Option<Option<Place>> {
    let mut told = Told {
        start: Found::default(),
        _between: [0; 20],
        root: 0,
        point: 0,
        _rest: [0; 100],
        text: [0; TEXT],
    };
    tell(mount, ROOT | POINT, &mut told).filter(|()| told.start.known & ROOT != 0)?;
    if told.start.known & POINT == 0 {
        return Some(None);
    }
    let [root, at] = [told.root, told.point].map(|start| {
        let text = told.text.get(start as usize..)?;
        let text = text.split(|byte| *byte == 0).next()?;
        Some(Path::new(OsStr::from_bytes(text)).to_path_buf())
    });
    let (root, at) = (root?, at?);
    Some((!at.as_os_str().is_empty()).then_some(Place { device, root, at }))
}
