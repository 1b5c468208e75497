//! Cursor's `sandbox.json`.

use crate::profile::error::{Place, ProfileCause};
use crate::profile::foreign::Losses;
use crate::profile::foreign::agents::{
    EVERY_PORT, allow_host, allow_hosts, deny_hosts, paths, settle_base, skip, unknown,
};
use crate::profile::foreign::files::{Access, below, root};
use crate::profile::foreign::meaning::Meaning;
use crate::profile::json::{self, Node};
use crate::profile::words::Variable;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Writable,
    ReadOnly,
    Unconfined,
}

/// Reads a document.
pub fn read(text: &[u8], losses: &mut Losses) -> Result<Meaning, ProfileCause> {
    let mut fields = json::parse(text)?.open_fields(&Place::Top)?;
    let mut meaning = Meaning { description: "made of Cursor's sandbox.json", ..Meaning::default() };
    let kinds = [
        ("workspace_readwrite", Kind::Writable),
        ("workspace_readonly", Kind::ReadOnly),
        ("insecure_none", Kind::Unconfined),
    ];
    let kind = fields.take("type", |node, place| node.word(place, &kinds))?.unwrap_or(Kind::Writable);
    if kind == Kind::Unconfined {
        return Err(Place::Key(&Place::Top, "type")
            .fault("'insecure_none' confines nothing: there is no policy")
            .into());
    }
    let boundaries = [("system", true), ("workspace", false)];
    let reads_all = fields.take("readBoundary", |node, place| node.word(place, &boundaries))?.unwrap_or(true);
    if reads_all {
        meaning.files.add(root(), Access::Read, "readBoundary");
    }
    let (workspace, own) = (below(Variable::Workspace, ""), "type");
    meaning.files.add(workspace, if kind == Kind::Writable { Access::Write } else { Access::Read }, own);
    for (key, access) in [
        ("additionalReadwritePaths", Access::Write),
        ("additionalReadonlyPaths", Access::Fixed),
        ("additionalReadPaths", Access::Fixed),
    ] {
        let listed = fields.take(key, |node, place| paths(node, place, losses))?.unwrap_or_default();
        // More may be written only where the workspace may.
        let counts = access == Access::Fixed || kind == Kind::Writable;
        for (location, place) in listed.into_iter().filter(|_| counts) {
            meaning.files.add_optional(location, access, place);
        }
    }
    fields.take("networkPolicy", |node, place| {
        let mut fields = node.open_fields(place)?;
        let network = &mut meaning.network;
        let modes = [("deny", false), ("allow", true)];
        let open = fields.take("default", |node, place| node.word(place, &modes))?.unwrap_or(false);
        if open && allow_host("*", place, network, losses) {
            losses.note(Place::Key(place, "default"), EVERY_PORT);
        }
        fields.take("allow", |node, place| allow_hosts(node, place, network, losses))?;
        fields.take("deny", |node, place| deny_hosts(node, place, network, losses))?;
        unknown(&fields, &["default", "allow", "deny"], losses);
        Ok(())
    })?;
    // Scratch is a run's own, and so are caches.
    for key in ["disableTmpWrite", "enableSharedBuildCache"] {
        fields.take(key, Node::truth)?;
    }
    skip(&mut fields, &["$schema"])?;
    unknown(
        &fields,
        &["type", "readBoundary", "additionalReadwritePaths", "additionalReadonlyPaths", "networkPolicy"],
        losses,
    );
    settle_base(&mut meaning);
    Ok(meaning)
}
