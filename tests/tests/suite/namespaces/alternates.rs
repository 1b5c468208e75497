//! Alternates: by them git outside would copy what no command may read to where a later one may.

use super::git::{in_repositories, plain};
use super::shell;

/// A repository that no run sees, and the name of what is in it.
const VICTIM: &str = "rm -rf ~/victim; git init -q ~/victim; cd ~/victim; echo secret > s; git add s; \
                      git commit -qm s; git rev-parse HEAD:s";
const WRITE: &str = "mkdir -p .git/objects/info; echo $PATH_OF > .git/objects/info/alternates";

#[test]
fn alternates_of_alternates_lead_to_no_other_repository() {
    in_repositories(|world| {
        let secret = plain(world, VICTIM).trim().to_string();
        let victim = world.home.join("victim/.git/objects");
        let victim = victim.display();
        let finds = || {
            let out = plain(world, &format!("git cat-file blob {secret} 2>/dev/null || true"));
            out == "secret\n"
        };
        let aside = ".git/objects/info/alternates.sbx-aside";
        let back = format!("mv {aside} .git/objects/info/alternates");
        let is_refused = |script: &str, then: &str| {
            let out = shell(world, &[], &format!("set -e; {script}")).run().success();
            assert!(world.exists(aside) && !finds(), "{script}: {out}");
            plain(world, &format!("{back}; {then}"));
            assert!(finds(), "{script}");
            plain(world, "rm .git/objects/info/alternates");
        };
        let own = WRITE.replace("$PATH_OF", "$PWD/alt");
        let nested = format!("mkdir -p alt/info; echo {victim} > alt/info/alternates");
        is_refused(&format!("{own}; {nested}"), "true");
        // What leads on comes later.
        plain(world, "rm -r alt; mkdir alt");
        shell(world, &[], &own).run().success().silent();
        is_refused(&nested, "true");
        // Over a link that stays in the workspace at first.
        let rest = plain(world, &format!("realpath --relative-to=$PWD/../.. {victim}"));
        let over = WRITE.replace("$PATH_OF", &format!("$PWD/lnk/../../../{}", rest.trim()));
        is_refused(&format!("mkdir -p b/b/b q; ln -s b/b/b lnk; {over}"), "ln -sfn q lnk");
    });
}
