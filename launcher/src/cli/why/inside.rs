//! `sbx why` from inside: what binds this very process, as far as it can be found out by asking and by doing. The
//! policy itself is nowhere to be read, so nothing is said about what cannot be tried without an effect.

use crate::cli::print;
use crate::cli::why::{as_json, as_text, status};
use crate::error::Refusal;
use crate::explain::query::{Answer, Question, Verdict, Wanted};
use crate::report::json::document;
use crate::sys::access::{self, Permission};
use crate::sys::status::Status;
use crate::sys::{plain, seccomp};
use crate::text::shown;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Who binds this process.
pub fn describe(json: bool) -> Result<i32, Refusal> {
    let confined = seccomp::is_confined();
    let status = Status::own().ok();
    let field = |name: &str| status.as_ref().and_then(|status| status.field(name));
    let (mode, filters) = (field("Seccomp"), field("Seccomp_filters"));
    let no_new_privs = field("NoNewPrivs").map(|value| value == "1");
    let paths = path_rules();
    if json {
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok());
        let value = serde_json::json!({
            "confined_by_sbx": confined,
            "seccomp_mode": number(mode),
            "seccomp_filters": number(filters),
            "no_new_privs": no_new_privs,
            "path_rules": paths,
        });
        print(document(&value).as_bytes())?;
    } else {
        let word = |known: Option<bool>| known.map_or("cannot be told", |yes| if yes { "yes" } else { "no" });
        let mode = match mode {
            Some("0") => "none".to_string(),
            Some("2") => filters.map_or("a filter".to_string(), |count| format!("filters: {count}")),
            Some(_) => "strict mode".to_string(),
            None => "cannot be told".to_string(),
        };
        let text = format!(
            "confined by sbx: {}\nseccomp: {mode}\nno new privileges: {}\npath rules: {}\n",
            word(Some(confined)),
            word(no_new_privs),
            word(paths)
        );
        print(text.as_bytes())?;
    }
    // Like an answer to "am I confined?".
    Ok(if confined { 0 } else { 1 })
}

/// Whether something else than permissions keeps the root directory from being listed. Rules that allow just that
/// cannot be seen this way.
fn path_rules() -> Option<bool> {
    let root = Path::new("/");
    match File::open(root) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            access::allows(root, Permission::READ).then_some(true)
        }
        _ => None,
    }
}

/// Tries what can be tried without an effect.
pub fn try_it(question: &Question, json: bool) -> Result<i32, Refusal> {
    let mut answer = match question {
        Question::Path(path, wanted) => opened(path, *wanted),
        _ => cannot_tell(),
    };
    answer.notes.push("sbx confines this process; with -p the answer would be that profile's".to_string());
    let text = if json { as_json(&answer, None) } else { as_text(&answer, None) };
    print(text.as_bytes())?;
    Ok(status(answer.verdict))
}

fn cannot_tell() -> Answer {
    let reason = "from inside this can't be told without doing it";
    Answer::of(Verdict::Depends, reason)
}

/// Opens a file or directory, which changes nothing in a regular one.
fn opened(path: &Path, wanted: Wanted) -> Answer {
    let regular = path.metadata().map(|meta| (meta.is_file(), meta.is_dir()));
    let (file, directory) = match regular {
        Ok(kind) => kind,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return cannot_tell(),
        Err(error) => return by_itself(path, &error),
    };
    if wanted.execute || wanted.remove || !(file || directory) || (directory && wanted.write) {
        return cannot_tell();
    }
    let mut how = File::options();
    how.read(wanted.read).write(wanted.write).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    match how.open(path) {
        Ok(_) => Answer::of(Verdict::Allowed, "it has been tried"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && permitted(path, wanted) => {
            Answer::of(Verdict::Refused, "it has been tried, and the file's permissions are not the reason")
        }
        Err(error) => by_itself(path, &error),
    }
}

fn permitted(path: &Path, wanted: Wanted) -> bool {
    let allows = |asked: bool, permission| !asked || access::allows(path, permission);
    allows(wanted.read, Permission::READ) && allows(wanted.write, Permission::WRITE)
}

fn by_itself(path: &Path, error: &io::Error) -> Answer {
    let cause = plain(error);
    Answer::of(
        Verdict::Refused,
        &format!("the file system refuses it, or hides it: {}: {cause}", shown(path)),
    )
}
