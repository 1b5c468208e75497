//! Codex's `config.toml`: the modes of its sandbox. Its permission profiles are in a module of their own.

mod network;
mod profiles;

use std::collections::BTreeMap;

use crate::profile::error::{Fault, Mistake, Place, Plain, ProfileCause, nearest};
use crate::profile::foreign::agents::codex::network::Reach;
use crate::profile::foreign::agents::{lose, misplaced, paths, settle_base, skip, unknown};
use crate::profile::foreign::files::{Access, Files, below, is_tmp, root};
use crate::profile::foreign::meaning::Meaning;
use crate::profile::foreign::{Losses, toml};
use crate::profile::json::{Fields, Node};
use crate::profile::location::Location;
use crate::profile::words::Variable;

/// The keys that say what a command may do. All others are about the agent.
const TOP: [&str; 6] = [
    "sandbox_mode",
    "sandbox_workspace_write",
    "default_permissions",
    "permissions",
    "shell_environment_policy",
    "features",
];

/// Those of them that no table has.
const ALONE: [&str; 4] =
    ["sandbox_mode", "sandbox_workspace_write", "default_permissions", "shell_environment_policy"];

/// What belongs further inside.
const INNER: [(&str, &[&str]); 5] = [
    (
        "sandbox_workspace_write",
        &["writable_roots", "network_access", "exclude_tmpdir_env_var", "exclude_slash_tmp"],
    ),
    ("permissions.NAME", &["filesystem", "network", "workspace_roots"]),
    ("permissions.NAME.network", &["domains", "unix_sockets"]),
    ("shell_environment_policy", &["inherit", "exclude", "set", "include_only"]),
    ("features", &["network_proxy"]),
];

/// What stays as it is in a directory that may be written.
const FIXED: [&str; 3] = ["/.git", "/.codex", "/.agents"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    ReadOnly,
    WorkspaceWrite,
    FullAccess,
}

const MODES: [(&str, Mode); 3] = [
    ("read-only", Mode::ReadOnly),
    ("workspace-write", Mode::WorkspaceWrite),
    ("danger-full-access", Mode::FullAccess),
];

/// Reads a document.
pub fn read(text: &[u8], losses: &mut Losses) -> Result<Meaning, ProfileCause> {
    let mut fields = toml::parse(text)?.open_fields(&Place::Top)?;
    misplaced(&fields, &INNER)?;
    sunken(&fields)?;
    let mut meaning = Meaning { description: "made of Codex's config.toml", ..Meaning::default() };
    let mode = fields.take("sandbox_mode", |node, place| node.word(place, &MODES))?;
    let chosen = fields.take("default_permissions", Node::string)?;
    let proxy = network::proxy(&mut fields)?;
    match (mode, chosen) {
        (Some(mode), chosen) => {
            if let Some(name) = chosen {
                let why = format!("'sandbox_mode' counts, and not the profile '{}'", Plain(&name));
                losses.note(Place::Key(&Place::Top, "default_permissions"), why);
            }
            modes(&mut fields, mode, proxy, &mut meaning, losses)?;
        }
        (None, Some(name)) => profiles::read(&mut fields, &name, proxy, &mut meaning, losses)?,
        (None, None) => {
            let missing = "there is neither 'sandbox_mode' nor 'default_permissions', so it has no policy";
            return Err(slip(&fields).unwrap_or_else(|| Place::Top.fault(missing)).into());
        }
    }
    fields.take("shell_environment_policy", |node, place| environment(node, place, &mut meaning, losses))?;
    lose(&mut fields, "profile", "the settings of one of 'profiles' are not looked up", losses)?;
    skip(&mut fields, &["sandbox_workspace_write", "permissions"])?;
    slip(&fields).map_or(Ok(()), Err)?;
    settle_base(&mut meaning);
    Ok(meaning)
}

/// A slip of the pen in one of the keys would leave rules out.
fn slip(fields: &Fields) -> Option<Fault> {
    let key = fields.left().find(|key| nearest(key, TOP.into_iter()).is_some())?;
    Some(Place::Top.fault(Mistake::unknown("key", key, &TOP, "there are")))
}

/// A line below the head of a table is the table's, whatever its author meant.
fn sunken(fields: &Fields) -> Result<(), Fault> {
    for (table, key) in fields.inner() {
        if ALONE.contains(&key) {
            let table = Place::Key(fields.place, table);
            let why = "the key belongs to the top, above the first table, and says nothing here";
            return Err(Place::Key(&table, key).fault(why));
        }
    }
    Ok(())
}

/// Lets places be changed. In each of them some names stay as they are, unless they are to be changed themselves.
fn add_writable(places: &BTreeMap<Location, String>, files: &mut Files) {
    for (location, place) in places {
        files.add_optional(location.clone(), Access::Write, place);
        // Scratch is a run's own, wherever it is.
        for name in FIXED.iter().filter(|_| !is_tmp(location)) {
            let rest = format!("{}{name}", location.rest.trim_end_matches('/'));
            let fixed = Location { base: location.base, rest: rest.into() };
            if !places.contains_key(&fixed) {
                files.add_optional(fixed, Access::Fixed, place);
            }
        }
    }
}

fn modes(
    fields: &mut Fields,
    mode: Mode,
    proxy: Option<Node>,
    meaning: &mut Meaning,
    losses: &mut Losses,
) -> Result<(), Fault> {
    if mode == Mode::FullAccess {
        let place = Place::Key(&Place::Top, "sandbox_mode");
        return Err(place.fault("'danger-full-access' confines nothing: there is no policy"));
    }
    meaning.files.add(root(), Access::Read, "sandbox_mode");
    let (mut roots, mut network) = (Vec::new(), false);
    fields.take("sandbox_workspace_write", |node, place| {
        let mut fields = node.open_fields(place)?;
        roots = fields.take("writable_roots", |node, place| paths(node, place, losses))?.unwrap_or_default();
        network = fields.take("network_access", Node::truth)?.unwrap_or(false);
        // Scratch is a run's own, wherever it is.
        skip(&mut fields, &["exclude_tmpdir_env_var", "exclude_slash_tmp"])?;
        unknown(&fields, &["writable_roots", "network_access", "exclude_tmpdir_env_var"], losses);
        Ok(())
    })?;
    if mode == Mode::ReadOnly || !network {
        // Without a network its filter lets nobody connect.
        meaning.close_unix_sockets();
    }
    if mode == Mode::ReadOnly {
        return Ok(());
    }
    roots.push((below(Variable::Workspace, ""), "sandbox_mode".to_string()));
    add_writable(&roots.into_iter().collect(), &mut meaning.files);
    if network { Reach::default().open(proxy, meaning, losses) } else { Ok(()) }
}

/// Reads `shell_environment_policy`. A run starts from the variables that its profile passes on.
fn environment(node: Node, place: &Place, meaning: &mut Meaning, losses: &mut Losses) -> Result<(), Fault> {
    let mut fields = node.open_fields(place)?;
    fields.take("exclude", |node, place| {
        node.list(place, |node, place| {
            let name = node.string(place)?;
            if name.is_empty() || name.contains(['?', '[', '=', '\0']) {
                losses.note(place, "of patterns only '*' is known");
            } else {
                meaning.env.deny.push(name.into_owned());
            }
            Ok(())
        })
    })?;
    fields.take("set", |node, place| {
        for (name, node) in node.object(place)? {
            let place = Place::Key(place, &name);
            let value = node.string(&place)?;
            if value.contains("${") || value.contains('\0') || name.is_empty() || name.contains(['=', '\0']) {
                losses.note(place, "no profile can set a variable like this");
            } else {
                meaning.env.set.insert(name.clone(), value.into_owned());
            }
        }
        Ok(())
    })?;
    let own = "a run starts from the variables that the profile passes on; see env.inherit";
    lose(&mut fields, "include_only", own, losses)?;
    fields.take("inherit", |node, place| {
        if node.word(place, &[("all", false), ("core", true), ("none", true)])? {
            losses.note(place, own);
        }
        Ok(())
    })?;
    skip(&mut fields, &["ignore_default_excludes", "experimental_use_profile"])?;
    unknown(&fields, &["inherit", "exclude", "set", "include_only", "ignore_default_excludes"], losses);
    Ok(())
}
