//! The README's examples do what they are shown to do.

use sbx_tests::stage;
use sbx_tests::users::as_users;
use sbx_tests::world::World;

const README: &str = include_str!("../../../README.md");
const MARK: &str = "<!-- test -->\n```sh\n";

/// The marked blocks. `! command` says that it fails, which `sh -e` alone would not check.
fn examples() -> Vec<String> {
    let block = |text: &str| text.split("\n```").next().unwrap_or(text).to_string();
    let checked = |line: &str| match line.strip_prefix("! ") {
        Some(command) => format!("if {command}; then exit 99; fi"),
        None => line.to_string(),
    };
    let blocks = README.split(MARK).skip(1).map(block);
    blocks.map(|text| text.lines().map(checked).collect::<Vec<_>>().join("\n")).collect()
}

#[test]
fn every_marked_example_works() {
    let examples = examples();
    assert!(examples.len() >= 10, "the marks in the README have gone: {}", examples.len());
    as_users(|user| {
        for example in &examples {
            let world = World::new(user);
            let path = format!("{}:/usr/local/bin:/usr/bin:/bin", stage::sbx().parent().unwrap().display());
            world.bare(["sh", "-ec", example]).env("PATH", &path).run().success();
        }
    });
}
