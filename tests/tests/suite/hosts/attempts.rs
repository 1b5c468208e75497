//! The attempts to get out (`tests/hosts/attacks.py`), and the page that lists them.

use super::{Internet, by_proxy, in_internets, world_of};
use sbx_tests::stage;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// What the page begins with is written by hand.
const MARK: &str = "<!-- from here on made by make test-hosts UPDATE=1 -->\n";

/// How many attempts have an internet together, and how many internets there are at a time.
const TOGETHER: usize = 8;
const AT_ONCE: usize = 3;

/// An attempt, what it repeats, and what became of it as which user.
struct Row {
    name: String,
    source: String,
    results: Vec<(&'static str, String)>,
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/internals/testing/hosts.md")
}

type Pairs = Vec<(String, String)>;

/// The lines `NAME<tab>SOURCE` or `RESULT NAME` of a program's output.
fn pairs(text: &str, between: char) -> Pairs {
    let pair = |line: &str| line.split_once(between).map(|(one, other)| (one.to_string(), other.to_string()));
    text.lines().filter_map(pair).collect()
}

/// The results of all attempts in an internet, with these variables for `attacks.py`, where some calls are answered.
fn results(internet: &mut Internet<'_>, variables: &str, answers: &[(libc::c_long, i32)]) -> (Pairs, Pairs) {
    let sources = pairs(&internet.run("/usr/bin/python3 attacks.py sources").success().out(), '\t');
    let user = &internet.world.user;
    let front = &format!("{variables} /usr/bin/python3 attacks.py log");
    let of_some = |some: &[(String, String)]| {
        let names: Vec<&str> = some.iter().map(|(name, _)| name.as_str()).collect();
        let (world, script) =
            (world_of(user), format!("{front} {} {}", stage::sbx().display(), names.join(" ")));
        let out = Internet { world: &world, log: String::new() }.run_answering(&script, answers);
        assert!(out.out().ends_with(" attempts, 0 through\n"), "{out}");
        pairs(&out.success().out(), ' ')
    };
    // Most of them wait.
    let groups: Vec<&[(String, String)]> = sources.chunks(TOGETHER).collect();
    let of_some = &of_some;
    let of_turn = |turn: usize| groups.iter().skip(turn).step_by(AT_ONCE).flat_map(|some| of_some(some));
    let results = std::thread::scope(|scope| {
        let turns = (0..AT_ONCE).map(|turn| scope.spawn(move || of_turn(turn).collect::<Pairs>()));
        turns.collect::<Vec<_>>().into_iter().flat_map(|turn| turn.join().unwrap()).collect()
    });
    (sources, results)
}

/// Tries all attempts as each user that there is.
fn rows() -> Vec<Row> {
    let rows = RefCell::new(Vec::<Row>::new());
    in_internets(|internet| {
        let (sources, results) = results(internet, "", &[]);
        let mut rows = rows.borrow_mut();
        for (name, source) in sources {
            let found = results.iter().find(|(_, tried)| *tried == name);
            let result = (internet.world.user.name, found.expect("each attempt has a result").0.clone());
            match rows.iter_mut().find(|row| row.name == name) {
                Some(row) => row.results.push(result),
                None => rows.push(Row { name, source, results: vec![result] }),
            }
        }
    });
    rows.into_inner()
}

fn table(rows: &[Row]) -> String {
    let heads: String = rows[0].results.iter().map(|(user, _)| format!(" as {user} |")).collect();
    let published = rows.iter().filter(|row| !row.source.is_empty()).count();
    let mut text = format!(
        "{} attempts, {published} of which repeat something published.\n\n| attempt | repeats |{heads}\n|---|---|{}\n",
        rows.len(),
        "---|".repeat(rows[0].results.len())
    );
    for Row { name, source, results } in rows {
        let cells: String = results.iter().map(|(_, result)| format!(" {result} |")).collect();
        text += &format!("| `{name}` | {source} |{cells}\n");
    }
    text
}

/// The page lists what was found. With SBX_TEST_UPDATE_PAGE=1 it is written.
#[test]
fn no_attempt_gets_out() {
    let rows = rows();
    // Without a tool it was skipped. The page has the results of root, too.
    if rows.first().is_none_or(|row| row.results.len() < 2) {
        return;
    }
    assert!(rows.iter().filter(|row| !row.source.is_empty()).count() >= 60);
    let old = std::fs::read_to_string(page()).unwrap();
    let (front, _) = old.split_once(MARK).expect("the page has a place for the table");
    let new = format!("{front}{MARK}\n{}", table(&rows));
    if std::env::var_os("SBX_TEST_UPDATE_PAGE").is_some_and(|value| value == "1") {
        std::fs::write(page(), new).unwrap();
    } else {
        assert!(new == old, "docs/internals/testing/hosts.md is old: 'make test-hosts UPDATE=1' writes it");
    }
}

/// Without a network of the run's own they are made on the proxy, of which the page says nothing: what is refused
/// there is the same.
#[test]
fn no_attempt_gets_out_by_proxy() {
    in_internets(|internet| {
        // Both ways of the page take long enough, and root has nothing that helps here.
        if !internet.world.user.is_root() {
            results(internet, "SBX_MORE_FLAGS='--namespaces none'", &[]);
        }
    });
}

/// Where the supervisor cannot take sockets, the kernel holds programs to the port of the proxy.
#[test]
fn no_attempt_gets_out_by_port() {
    in_internets(|internet| {
        if !internet.world.user.is_root() {
            results(internet, "SBX_BY_PORT=1", by_proxy::NO_SOCKETS);
        }
    });
}
