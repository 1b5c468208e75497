//! Codex's `config.toml`: the modes of its sandbox. Its permission profiles are in a module of their own.

mod profiles;

use crate::profile::error::{Fault, Mistake, Place, Plain, ProfileCause, nearest};
use crate::profile::foreign::agents::{
    allow_host, deny_host, lose, misplaced, paths, settle_base, skip, unknown,
};
use crate::profile::foreign::files::{Access, below, root};
use crate::profile::foreign::meaning::{Meaning, Network};
use crate::profile::foreign::{Losses, toml};
use crate::profile::json::{Fields, Node};
use crate::profile::location::Location;
use crate::profile::words::{NetworkMode, Variable};

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
    let proxy = fields.take("features", features)?.unwrap_or_default();
    match (mode, chosen) {
        (Some(mode), chosen) => {
            if let Some(name) = chosen {
                let why = format!("'sandbox_mode' counts, and not the profile '{}'", Plain(&name));
                losses.note(Place::Key(&Place::Top, "default_permissions"), why);
            }
            modes(&mut fields, mode, proxy, &mut meaning, losses)?;
        }
        (None, Some(name)) => profiles::read(&mut fields, &name, &mut meaning, losses)?,
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

/// What the proxy of the sandbox is told.
#[derive(Default)]
struct Proxy {
    is_on: bool,
    domains: Vec<(String, bool)>,
}

fn features(node: Node, place: &Place) -> Result<Proxy, Fault> {
    let mut fields = node.open_fields(place)?;
    let proxy = fields.take("network_proxy", |node, place| match node {
        Node::Bool(is_on) => Ok(Proxy { is_on, ..Proxy::default() }),
        node => {
            let mut fields = node.open_fields(place)?;
            let is_on = fields.take("enabled", Node::truth)?.unwrap_or(false);
            let domains = fields.take("domains", domains)?.unwrap_or_default();
            Ok(Proxy { is_on, domains })
        }
    })?;
    Ok(proxy.unwrap_or_default())
}

/// Hosts, and whether they are allowed.
fn domains(node: Node, place: &Place) -> Result<Vec<(String, bool)>, Fault> {
    let pairs = node.object(place)?.into_iter().map(|(host, node)| {
        let allowed = node.word(&Place::Key(place, &host), &[("allow", true), ("deny", false)])?;
        Ok((host, allowed))
    });
    pairs.collect()
}

/// Adds rules about hosts. Without one nothing is allowed.
fn add_domains(domains: &[(String, bool)], place: &Place, network: &mut Network, losses: &mut Losses) {
    let mut at_every_port = false;
    for (host, allowed) in domains {
        let place = Place::Key(place, host);
        if *allowed {
            at_every_port |= allow_host(host, &place, network, losses);
        } else {
            deny_host(host, &place, network, losses);
        }
    }
    if at_every_port {
        losses.note(place, super::EVERY_PORT);
    }
}

fn modes(
    fields: &mut Fields,
    mode: Mode,
    proxy: Proxy,
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
    roots.insert(0, (below(Variable::Workspace, ""), "sandbox_mode".to_string()));
    for (location, place) in &roots {
        for name in FIXED {
            let rest = format!("{}{name}", location.rest.trim_end_matches('/'));
            let fixed = Location { base: location.base, rest: rest.into() };
            // One that is a root itself may be written.
            if !roots.iter().any(|(root, _)| *root == fixed) {
                meaning.files.add(fixed, Access::Fixed, place);
            }
        }
        meaning.files.add_optional(location.clone(), Access::Write, place);
    }
    if network && proxy.is_on {
        let features = Place::Key(&Place::Top, "features");
        let place = Place::Key(&features, "network_proxy");
        add_domains(&proxy.domains, &place, &mut meaning.network, losses);
    } else if network {
        meaning.network.mode = Some(NetworkMode::Host);
    }
    Ok(())
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
