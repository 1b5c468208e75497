//! Secrets that can be read, and what can be changed that something outside acts on.

use crate::error::Refusal;
use crate::explain::query::{self, Question, Wanted};
use crate::explain::review::probes::opening::{self, Opening, Sought};
use crate::explain::review::probes::{ABSENT, Gain, Probes, Side, is_given, place, places};
use crate::explain::sensitive::{DEVICES, Sensitive, Touched, Use};
use crate::profile::{PathEntry, Variables};
use crate::sys::access::{self, Permission};
use crate::sys::path::{canonical, is_socket, is_there};
use crate::sys::within::is_within;
use crate::text::shown;
use std::fs::{self, FileType};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Reading alone.
pub const READ: Wanted = Wanted { read: true, write: false, execute: false, remove: false };
/// Changing alone.
pub const WRITE: Wanted = Wanted { read: false, write: true, execute: false, remove: false };
/// Maximum number of places that are told of one rule, of those that no list names.
const MOST_BELOW: usize = 8;
/// Maximum number of entries of directories that are looked at for sockets and devices.
const MOST_ENTRIES: usize = 20_000;

/// A path that a rule gives, with the rule.
type Granted<'a> = (PathBuf, &'a PathEntry);

/// Something to ask about.
#[derive(PartialEq)]
struct Point {
    path: PathBuf,
    /// What it is.
    why: String,
    /// Whether a list says that.
    is_known: bool,
}

impl From<Touched> for Point {
    fn from(Touched { at, why, is_known, .. }: Touched) -> Point {
        Point { path: at, why, is_known }
    }
}

/// Asks about every path that the profile gives: whether it lies in, is, or holds something sensitive. Whether a run
/// gets that, the policy says; whether its user does, the kernel. Returns what permissions alone close.
pub fn ask(probes: &mut Probes<'_>, sensitive: &Sensitive) -> Result<Vec<PathBuf>, Refusal> {
    let (own, base) = (probes.own, probes.base);
    let topics = [
        ("secrets", Use::Read, READ, "can be read"),
        ("runs later", Use::Write, WRITE, "can be changed, and something outside executes or trusts it"),
    ];
    let mut closed = Vec::new();
    for (topic, what, wanted, meaning) in topics {
        let granted = granted(own, what);
        for Point { path: point, why, is_known } in points(own, &granted, sensitive, what) {
            let question = Question::Path(point.clone(), wanted);
            let answer = query::answer(own.about, &question)?;
            // What an entry names is given when it comes. Of what built-in profiles name, a list has to know it.
            let comes_there =
                |(path, entry): &Granted<'_>| *path == point && (!entry.origin.built_in || is_known);
            let comes = !is_there(&point) && granted.iter().any(comes_there);
            if !is_given(&answer) && !comes {
                continue;
            }
            let opening = if comes { Opening::Here } else { opening(own, &point, what, &granted)? };
            if opening == Opening::Closed {
                if is_there(&point) && !closed.iter().any(|above: &PathBuf| is_within(&point, above)) {
                    closed.push(point.clone());
                }
                continue;
            }
            let around = granted.iter().filter(|(path, _)| is_within(&point, path));
            let nearest = around.max_by_key(|(path, _)| path.components().count());
            let rules = nearest.map_or_else(|| places(&answer), |(_, entry)| vec![place(entry)]);
            let absent = if is_there(&point) { String::new() } else { format!(", {ABSENT}") };
            let about = format!("{} ({why}{absent}{})", shown(&point), remark(&opening));
            let known = base.map(|base| query::answer(base.about, &question)).transpose()?;
            let comes_too = || base.is_some_and(|base| self::granted(base, what).iter().any(comes_there));
            let usual = known.is_some_and(|answer| is_given(&answer)) || (comes && comes_too());
            probes.add(Gain { topic, about, meaning: meaning.to_string(), rules }, usual);
        }
    }
    closed.dedup();
    Ok(closed)
}

/// What the permissions of files let this user do of what rules give.
fn opening(side: Side<'_>, point: &Path, what: Use, granted: &[Granted<'_>]) -> Result<Opening, Refusal> {
    let is_open = match what {
        Use::Write => {
            let is_granted = |path: &Path| granted.iter().any(|(above, _)| is_within(path, above));
            return opening::of(point, Sought::Anything, is_granted, |at| is_written(side, at));
        }
        Use::Read if !is_there(point) => true,
        // Who may not list a directory may know names in it.
        Use::Read if point.is_dir() => {
            [Permission::READ, Permission::EXECUTE].iter().any(|p| access::allows(point, *p))
        }
        Use::Read => access::allows(point, Permission::READ),
    };
    Ok(if is_open { Opening::Here } else { Opening::Closed })
}

/// Whether the policy lets a path be changed.
fn is_written(side: Side<'_>, path: &Path) -> Result<bool, Refusal> {
    Ok(is_given(&query::answer(side.about, &Question::Path(path.to_path_buf(), WRITE))?))
}

/// What is said of a path that is not open itself.
fn remark(opening: &Opening) -> String {
    match opening {
        Opening::Here | Opening::Closed => String::new(),
        Opening::Below(path) => format!("; closed itself, but {} in it is not", shown(path)),
        Opening::Unknown => "; more is in it than can be looked through".to_string(),
    }
}

/// Devices that no built-in profile opens. Disks first: whoever opens one has all that is on it.
pub fn devices(side: Side<'_>, sensitive: &Sensitive) -> Result<Vec<Gain>, Refusal> {
    let home = Path::new(DEVICES);
    let (mut gains, mut told) = (Vec::new(), Vec::new());
    for (path, entry) in granted(side, Use::Read) {
        let at = if is_within(home, &path) { home } else { &*path };
        if !is_within(at, home) {
            continue;
        }
        let meaning = "devices that no built-in profile opens can be opened".to_string();
        // What an entry names is given when it comes.
        if !is_there(at) && !sensitive.is_known_device(at) && !told.iter().any(|known| known == at) {
            let (about, rules) = (format!("{} ({ABSENT})", shown(at)), vec![place(entry)]);
            gains.push(Gain { topic: "devices", about, meaning, rules });
            told.push(at.to_path_buf());
            continue;
        }
        let mut found = below(at, |kind| kind.is_char_device() || kind.is_block_device());
        found.retain(|device| !sensitive.is_known_device(device) && !told.contains(device));
        found.sort_by_key(|device| !is_disk(device));
        for device in found {
            let ways = [(READ, Permission::READ), (WRITE, Permission::WRITE)];
            let mut can = false;
            for (wanted, permission) in ways {
                can |= access::allows(&device, permission)
                    && is_given(&query::answer(side.about, &Question::Path(device.clone(), wanted))?);
            }
            if can {
                let what = if is_disk(&device) { " (a disk: all that is on it)" } else { "" };
                let (about, rules) = (format!("{}{what}", shown(&device)), vec![place(entry)]);
                gains.push(Gain { topic: "devices", about, meaning: meaning.clone(), rules });
                told.push(device);
            }
        }
    }
    Ok(gains)
}

fn is_disk(device: &Path) -> bool {
    device.metadata().is_ok_and(|meta| meta.file_type().is_block_device())
}

/// What is of such a kind at a path and below it, up to a number of entries. Links are not followed.
pub fn below(path: &Path, is_it: impl Fn(&FileType) -> bool) -> Vec<PathBuf> {
    let (mut found, mut left, mut waiting) = (Vec::new(), MOST_ENTRIES, vec![path.to_path_buf()]);
    while let Some(at) = waiting.pop()
        && left > 0
    {
        let Ok(meta) = at.symlink_metadata() else { continue };
        if is_it(&meta.file_type()) {
            found.push(at);
            continue;
        }
        let entries = meta.is_dir().then(|| fs::read_dir(&at).ok()).flatten();
        for entry in entries.into_iter().flatten().flatten() {
            left = left.saturating_sub(1);
            waiting.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Directories in which a command may make a repository that nobody looks at afterwards: git outside executes what its
/// settings and hooks name.
pub fn repositories(side: Side<'_>) -> Result<Vec<Gain>, Refusal> {
    let plan = side.about.plan;
    // What the run looks through when it has ended.
    let looked_at = plan.workspace.as_ref().filter(|_| plan.record.is_some());
    let mut gains = Vec::new();
    for (path, entry) in granted(side, Use::Write) {
        let is_elsewhere = |at: &Path| {
            !looked_at.is_some_and(|own| is_within(at, own)) && !is_within(at, Path::new(DEVICES))
        };
        if !is_elsewhere(&path) || !path.is_dir() || !is_written(side, &path)? {
            continue;
        }
        let is_given = |at: &Path| Ok(is_elsewhere(at) && is_written(side, at)?);
        let opening = opening::of(&path, Sought::Directory, |_| false, is_given)?;
        let about = match &opening {
            Opening::Closed => continue,
            Opening::Here => shown(&path),
            Opening::Below(at) => format!("{} (in {})", shown(&path), shown(at)),
            Opening::Unknown => format!("{} (more is in it than can be looked through)", shown(&path)),
        };
        let meaning =
            "a repository (.git) can be made in it, and git outside executes what its settings name";
        let rules = vec![place(entry)];
        gains.push(Gain { topic: "runs later", about, meaning: meaning.to_string(), rules });
    }
    Ok(gains)
}

/// The user's work: what is made of it later is made of what the command leaves there.
pub fn work(side: Side<'_>) -> Result<Vec<Gain>, Refusal> {
    let plan = side.about.plan;
    let Some(own) = plan.workspace.as_deref() else { return Ok(Vec::new()) };
    let is_protected = plan.namespaces.is_ok() && !side.profile.paths.protect.is_empty();
    let but = if is_protected { ", but for what is protected" } else { "" };
    let mut gains: Vec<Gain> = Vec::new();
    for (path, entry) in granted(side, Use::Write) {
        let at = if is_within(own, &path) { own } else { &*path };
        let about = shown(at);
        if !is_within(at, own) || !is_written(side, at)? || gains.iter().any(|known| known.about == about) {
            continue;
        }
        if opening::of(at, Sought::Anything, |_| false, |at| is_written(side, at))? != Opening::Closed {
            let meaning = format!(
                "all of it can be changed and removed{but}: what is built, run, committed or pushed from it later is \
                 the command's"
            );
            gains.push(Gain { topic: "workspace", about, meaning, rules: vec![place(entry)] });
        }
    }
    Ok(gains)
}

/// What a home of the run's own gets of the user's, beside what built-in profiles give it.
pub fn of_home(side: Side<'_>) -> Vec<Gain> {
    let home = &side.profile.home;
    let gain = |about: String, meaning: &str, rule: String| Gain {
        topic: "secrets",
        about,
        meaning: meaning.to_string(),
        rules: vec![rule],
    };
    let copies = home.copies.iter().filter(|entry| !entry.origin.built_in).map(|entry| {
        let keep: Vec<&str> = entry.keep.iter().map(|pattern| &**pattern).collect();
        let about = format!("{}: {}", entry.path, keep.join(", "));
        gain(about, "a home of the run's own has a copy of these of its lines", entry.origin.to_string())
    });
    let stores = home.stores.iter().filter(|entry| !entry.origin.built_in);
    let stores =
        stores.map(|entry| gain(entry.value.to_string(), "a home of the run's own shows it", place(entry)));
    copies.chain(stores).collect()
}

/// The paths that the profile gives. What is made for each run is the run's own.
pub fn granted(Side { about, profile }: Side<'_>, what: Use) -> Vec<Granted<'_>> {
    let plan = about.plan;
    let variables =
        Variables { workspace: plan.workspace.as_deref(), home: about.host.home(), ..Variables::default() };
    let paths = &profile.paths;
    let lists = match what {
        Use::Read => vec![&paths.read, &paths.execute, &paths.write],
        Use::Write => vec![&paths.write],
    };
    let entries = lists.into_iter().flat_map(|list| list.iter());
    entries.filter_map(|entry| Some((canonical(&entry.expand_path(&variables)?), entry))).collect()
}

/// What to ask about: what is there now first, and then what a list knows.
fn points(side: Side<'_>, granted: &[Granted<'_>], sensitive: &Sensitive, what: Use) -> Vec<Point> {
    let home = side.about.host.home();
    // What is nowhere on this machine is nobody's secret; in a home directory it may come. Devices and sockets have
    // topics of their own.
    let is_file = |path: &Path| !is_within(path, Path::new(DEVICES)) && !is_socket(path);
    let is_something = |path: &Path| {
        is_file(path)
            && (what == Use::Write || is_there(path) || home.is_some_and(|home| is_within(path, home)))
    };
    // Without path rules everything is given.
    let everything = side.about.plan.paths.is_none().then(|| PathBuf::from("/"));
    let mut below: Vec<Point> = Vec::new();
    let mut here: Vec<Point> = Vec::new();
    for path in granted.iter().map(|(path, _)| path).chain(&everything) {
        let (held, around): (Vec<_>, Vec<_>) =
            sensitive.touched(path, what, MOST_BELOW).into_iter().partition(|touched| touched.is_below);
        // The nearest place says best what it is.
        let nearest = around.into_iter().max_by_key(|touched| touched.at.components().count());
        here.extend(nearest.map(|touched| Point { path: path.clone(), ..touched.into() }));
        below.extend(held.into_iter().map(Point::from));
    }
    let mut points: Vec<Point> = Vec::new();
    // What is below an open place is open with it; below a closed one each place has permissions of its own.
    let holds = |above: &Path, path: &Path| {
        let is_closed = || what == Use::Write && !access::allows(above, Permission::CHANGE);
        is_within(path, above) && (path == above || !is_closed())
    };
    for point in below.into_iter().filter(|point| is_something(&point.path)) {
        if !points.iter().any(|above| holds(&above.path, &point.path)) {
            points.push(point);
        }
    }
    for point in here.into_iter().filter(|point| is_file(&point.path)) {
        if !points.iter().any(|known| known.path == point.path) {
            points.push(point);
        }
    }
    points.sort_by_key(|point| (!is_there(&point.path), !point.is_known));
    points
}
