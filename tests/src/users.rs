//! The users of a test: the current one, and an ordinary one as well if that is root.

use crate::sys;

/// The account that stands for "an ordinary user" when the suites run as root.
const ORDINARY: u32 = 65534;

/// The user that a test's commands run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The account's name in failure messages and in `USER`.
    pub name: &'static str,
    /// Real, effective and saved user and group number.
    pub id: u32,
    /// Whether commands have to give up root to become this user.
    pub switch: bool,
}

impl User {
    /// The user who runs the suites.
    pub fn current() -> User {
        match sys::euid() {
            0 => User { name: "root", id: 0, switch: false },
            id => User { name: "tester", id, switch: false },
        }
    }

    /// An ordinary user: the current one, or `nobody` when that is root.
    pub fn ordinary() -> User {
        match sys::euid() {
            0 => User { name: "nobody", id: ORDINARY, switch: true },
            _ => User::current(),
        }
    }

    /// The users that there are to try: root and an ordinary one, or only the ordinary one.
    pub fn all() -> Vec<User> {
        let current = User::current();
        if current.is_root() { vec![current, User::ordinary()] } else { vec![current] }
    }

    /// Whether this is root.
    pub fn is_root(&self) -> bool {
        self.id == 0
    }

    /// The beginning of a command line that gives a command a mount namespace, and other namespaces (unshare(1)).
    pub fn unshare(&self, others: &[&'static str]) -> Vec<&'static str> {
        let maps: &[_] = if self.is_root() { &[] } else { &["--map-root-user", "--user"] };
        [&["unshare", "--mount"], others, maps].concat()
    }
}

/// Runs `body` once for each user there is to try.
pub fn as_users(body: impl Fn(&User)) {
    for user in &User::all() {
        eprintln!("--- as {}", user.name);
        body(user);
    }
}
