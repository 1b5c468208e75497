//! The built-in profiles, how profiles extend each other, and what is said about broken ones.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "profiles/architectures.rs"]
mod architectures;
#[path = "profiles/broken.rs"]
mod broken;
#[path = "profiles/built_in.rs"]
mod built_in;
#[path = "profiles/copies.rs"]
mod copies;
#[path = "profiles/decisions.rs"]
mod decisions;
#[path = "profiles/extending.rs"]
mod extending;
#[path = "profiles/shown.rs"]
mod shown;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use sbx::profile::{self, Profile, ProfileError, Search};

/// A directory of profiles, gone when dropped.
struct Shelf {
    dir: PathBuf,
}

impl Shelf {
    fn new() -> Shelf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("sbx-profiles-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).unwrap();
        Shelf { dir }
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn search(&self) -> Search {
        Search { dirs: vec![self.dir.clone()] }
    }

    fn load(&self, name: &str) -> Result<Profile, ProfileError> {
        profile::load(OsStr::new(name), &self.search())
    }

    fn file(&self, text: &str) -> Result<Profile, ProfileError> {
        load_path(&self.put("p.json", text))
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn load_path(path: &Path) -> Result<Profile, ProfileError> {
    profile::load(path.as_os_str(), &Search::default())
}

fn built_in_profile(name: &str) -> Profile {
    profile::load(OsStr::new(name), &Search::default()).unwrap()
}
