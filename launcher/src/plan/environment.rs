//! The environment that the command gets: what the profile passes on, what it sets, what the user adds.

mod addresses;

use crate::error::Refusal;
use crate::plan::Inputs;
use crate::plan::variables::{SHELL_FLAGS, SHELL_PROGRAM};
use crate::profile::{Given, Name, Pattern, Variables};
use crate::text::shown;
use sbx_policy::env::{ACTION, ALLOW, DENY};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Variables that make a loader or an interpreter run other code than the command's own.
static DANGEROUS: [Pattern; 46] = [
    Pattern::fixed("LD_*"),
    Pattern::fixed("DYLD_*"),
    Pattern::fixed("GCONV_PATH"),
    Pattern::fixed("GLIBC_TUNABLES"),
    Pattern::fixed("PYTHONPATH"),
    Pattern::fixed("PYTHONSTARTUP"),
    Pattern::fixed("PYTHONHOME"),
    Pattern::fixed("PYTHONUSERBASE"),
    Pattern::fixed("NODE_OPTIONS"),
    Pattern::fixed("NODE_PATH"),
    Pattern::fixed("RUBYOPT"),
    Pattern::fixed("RUBYLIB"),
    Pattern::fixed("PERL5OPT"),
    Pattern::fixed("PERL5LIB"),
    Pattern::fixed("PERL5DB"),
    Pattern::fixed("LUA_INIT*"),
    Pattern::fixed("LUA_PATH*"),
    Pattern::fixed("LUA_CPATH*"),
    Pattern::fixed("PHPRC"),
    Pattern::fixed("PHP_INI_SCAN_DIR"),
    Pattern::fixed("BASH_ENV"),
    Pattern::fixed("ENV"),
    Pattern::fixed("BASH_FUNC_*"),
    Pattern::fixed("JAVA_TOOL_OPTIONS"),
    Pattern::fixed("JDK_JAVA_OPTIONS"),
    Pattern::fixed("_JAVA_OPTIONS"),
    Pattern::fixed("OPENSSL_CONF"),
    Pattern::fixed("OPENSSL_MODULES"),
    Pattern::fixed("LESSOPEN"),
    Pattern::fixed("LESSCLOSE"),
    Pattern::fixed("GIT_SSH*"),
    Pattern::fixed("GIT_EXTERNAL_DIFF"),
    Pattern::fixed("GIT_CONFIG_*"),
    Pattern::fixed("PERLLIB"),
    Pattern::fixed("MAKEFILES"),
    Pattern::fixed("GIT_EXEC_PATH"),
    Pattern::fixed("GIT_TEMPLATE_DIR"),
    Pattern::fixed("DOTNET_STARTUP_HOOKS"),
    Pattern::fixed("PYTHONPYCACHEPREFIX"),
    Pattern::fixed("PYTHONWARNINGS"),
    Pattern::fixed("OPENSSL_ENGINES"),
    Pattern::fixed("CLASSPATH"),
    Pattern::fixed("NODE_REPL_EXTERNAL_MODULE"),
    Pattern::fixed("SECCOMP_*"),
    Pattern::fixed("SBX_SHIM_FD"),
    Pattern::fixed("LL_*"),
];

/// A variable named on the command line: with a value, or passed on with the one it has.
pub struct Named {
    /// Its name.
    pub name: OsString,
    /// Its value.
    pub value: Option<OsString>,
}

/// What decides about the environment.
pub struct Wishes<'a> {
    /// Patterns of names that are passed on.
    pub inherit: &'a [Given<Pattern>],
    /// Patterns of names whose values are addresses: passed on where the network is `open`, and never with a password.
    pub addresses: &'a [Given<Pattern>],
    /// Whether the network is open.
    pub open: bool,
    /// Patterns of names that are not, whatever `inherit` says.
    pub deny: &'a [Given<Pattern>],
    /// Variables set by the profile.
    pub set: &'a [(OsString, OsString)],
    /// `--env`.
    pub named: &'a [Named],
    /// `--inherit-env`: pass on everything that is neither denied nor dangerous.
    pub inherit_all: bool,
    /// `--allow-dangerous-env`.
    pub allow_dangerous: bool,
}

/// What of a run the environment depends on.
#[derive(Clone, Copy, Debug)]
pub struct Means<'a> {
    /// Whether tools cannot write where they keep packages in the home directory.
    pub is_home_closed: bool,
    /// Whether there is a network that leads to the addresses of other machines.
    pub is_network_open: bool,
    /// The variables by which programs learn of a proxy.
    pub proxy: &'a [(OsString, OsString)],
}

/// The environment of a command, as `NAME=value` strings.
pub fn command_environment(
    inputs: &Inputs<'_>,
    variables: &Variables<'_>,
    means: Means<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<OsString>, Refusal> {
    let Inputs { request, profile, host, directory, .. } = inputs;
    // A profile may set a variable for every run that is otherwise set for some.
    let in_home = profile.home.closed_env.iter().filter(|_| means.is_home_closed);
    let offline = profile.network.closed_env.iter().filter(|_| !means.is_network_open);
    let set = in_home.chain(offline).chain(profile.env.set.iter());
    let set = set.filter_map(|(name, value)| Some((OsString::from(&**name), value.expand(variables)?)));
    // Nothing but the proxy can be reached, whatever the profile says.
    let set: Vec<_> = set.chain(means.proxy.iter().cloned()).collect();
    let named = request.env.iter().map(|text| named(text)).collect::<Result<Vec<_>, _>>()?;
    let wishes = Wishes {
        inherit: &profile.env.inherit,
        addresses: &profile.env.addresses,
        open: means.is_network_open,
        deny: &profile.env.deny,
        set: &set,
        named: &named,
        inherit_all: request.inherit_env || profile.is_unrestricted(),
        allow_dangerous: request.allow_dangerous_env,
    };
    let Built { mut passed, withheld } = build(host.environment.iter().cloned(), &wishes)?;
    warnings.extend(warning(&withheld));
    warnings.extend(lifted(&named, &profile.env.deny));
    let fallback = variables.tmp.unwrap_or(Path::new("/"));
    passed.entry("HOME".into()).or_insert_with(|| fallback.into());
    // A shell says in it where it is itself.
    let is_callers = |current: &&mut OsString| host.variable("PWD").is_some_and(|own| own == **current);
    if let Some(current) = passed.get_mut(OsStr::new("PWD")).filter(is_callers)
        && request.cwd.is_some()
    {
        *current = directory.into();
    }
    Ok(entries(passed))
}

/// Says which addresses the command does without, and may miss.
fn warning(withheld: &[OsString]) -> Option<String> {
    let names: Vec<String> = withheld.iter().map(|name| shown(Path::new(name))).collect();
    let flags: String = names.iter().map(|name| format!(" --env {name}")).collect();
    (!names.is_empty()).then(|| {
        format!(
            "warning: not passed on, because an address in it may hold a password: {}; pass it with{flags}",
            names.join(", ")
        )
    })
}

/// Says which variables flags name although a profile of the user's keeps them back. What the built-in ones keep back
/// is there to be named.
fn lifted(named: &[Named], denied: &[Given<Pattern>]) -> Vec<String> {
    let of_user = || denied.iter().filter(|denial| !denial.origin.built_in);
    let warning = |named: &Named| {
        let denial = of_user().find(|denial| denial.value.matches(Name::new(named.name.as_bytes())))?;
        let (name, denial) = (shown(Path::new(&named.name)), &denial.origin);
        Some(format!("warning: {name} is passed on although {denial} keeps it back: --env outranks it"))
    };
    named.iter().filter_map(warning).collect()
}

/// The parts of `K=V` or `K`.
pub fn name_and_value(text: &OsStr) -> (&OsStr, Option<&OsStr>) {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (OsStr::from_bytes(&bytes[..at]), Some(OsStr::from_bytes(&bytes[at + 1..]))),
        None => (text, None),
    }
}

/// Takes `K=V` or `K` apart.
pub fn named(text: &OsStr) -> Result<Named, Refusal> {
    let (name, value) = name_and_value(text);
    if name.is_empty() {
        return Err(Refusal::new(format!(
            "cannot set '{}': a variable needs a name, as in --env NAME=value",
            shown(Path::new(text))
        )));
    }
    Ok(Named { name: name.to_os_string(), value: value.map(OsStr::to_os_string) })
}

/// What became of the variables.
pub struct Built {
    /// The command's environment.
    pub passed: BTreeMap<OsString, OsString>,
    /// The names of addresses that would lead somewhere, and may hold a password.
    pub withheld: Vec<OsString>,
}

/// The command's environment.
pub fn build(
    host: impl Iterator<Item = (OsString, OsString)>,
    wishes: &Wishes<'_>,
) -> Result<Built, Refusal> {
    let mut result = BTreeMap::new();
    let mut withheld = Vec::new();
    // Of those that are not passed on, the ones that the user names.
    let mut others = Vec::new();
    for (name, value) in host {
        let known = Name::new(name.as_bytes());
        let is_address = any(wishes.addresses, known);
        let wanted = wishes.inherit_all || any(wishes.inherit, known) || (is_address && wishes.open);
        let passed = wanted && !any(wishes.deny, known) && !is_dangerous(known) && !is_for_shell(&name);
        let secret = is_address && addresses::may_hold_password(value.as_bytes());
        if passed && !secret {
            result.insert(name, value);
            continue;
        }
        if passed && wishes.open && !wishes.named.iter().any(|named| named.name == name) {
            withheld.push(name.clone());
        }
        if wishes.named.iter().any(|named| named.name == name) {
            others.push((name, value));
        }
    }
    let of_host = |name: &OsStr, passed_on: &BTreeMap<OsString, OsString>| {
        let other = others.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value);
        other.or_else(|| passed_on.get(name)).cloned()
    };
    let named: Vec<Option<OsString>> = wishes
        .named
        .iter()
        .map(|named| named.value.clone().or_else(|| of_host(&named.name, &result)))
        .collect();
    // Programs break in odd ways without these.
    for (name, value) in [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("TERM", "dumb")] {
        result.entry(name.into()).or_insert_with(|| value.into());
    }
    result.extend(wishes.set.iter().cloned());
    for (Named { name, .. }, value) in wishes.named.iter().zip(named) {
        if is_dangerous(Name::new(name.as_bytes())) && !wishes.allow_dangerous {
            return Err(Refusal::new(format!(
                "cannot pass {} to the command: it makes programs load other code; add --allow-dangerous-env \
                 if that is meant",
                shown(Path::new(name))
            )));
        }
        if is_ours(name) {
            return Err(Refusal::new(format!(
                "cannot pass {} to the command: sbx sets it itself",
                shown(Path::new(name))
            )));
        }
        match value {
            Some(value) => drop(result.insert(name.clone(), value)),
            None => {
                return Err(Refusal::new(format!(
                    "cannot pass {} on: it is not set; give it a value with --env {0}=VALUE",
                    shown(Path::new(name))
                )));
            }
        }
    }
    Ok(Built { passed: result, withheld })
}

fn any(patterns: &[Given<Pattern>], name: Name<'_>) -> bool {
    patterns.iter().any(|pattern| pattern.value.matches(name))
}

/// Whether a variable passes with --allow-dangerous-env only.
pub fn is_kept_back(name: &OsStr) -> bool {
    is_dangerous(Name::new(name.as_bytes()))
}

/// Whether a variable is one of those by which sbx tells its own parts something.
pub fn is_reserved(name: &OsStr) -> bool {
    is_ours(name) || is_for_shell(name)
}

/// Whether all names of a pattern are those of variables that load other code, which are not passed on.
pub fn is_never_passed(names: &Pattern) -> bool {
    DANGEROUS.iter().any(|pattern| pattern.covers(names))
}

fn is_dangerous(name: Name<'_>) -> bool {
    DANGEROUS.iter().any(|pattern| pattern.matches(name))
}

/// The shim's own variables carry the seal, and are never the user's.
fn is_ours(name: &OsStr) -> bool {
    [ALLOW, DENY, ACTION, "SBX_SHIM_FD"].iter().any(|ours| name == *ours)
}

/// What `sbx-shell` was told of its own run.
fn is_for_shell(name: &OsStr) -> bool {
    [SHELL_FLAGS, SHELL_PROGRAM].iter().any(|of_shell| name == *of_shell)
}

/// As the `NAME=value` strings of an environment.
pub fn entries(environment: BTreeMap<OsString, OsString>) -> Vec<OsString> {
    let entry = |(name, value): (OsString, OsString)| {
        let mut bytes = name.into_vec();
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        OsString::from_vec(bytes)
    };
    environment.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Origin, Shared};

    fn patterns(list: &[&'static str]) -> Vec<Given<Pattern>> {
        let origin = Shared::from(Origin {
            profile: Shared::Fixed("test"),
            built_in: false,
            optional: false,
            unless_credentials: false,
            key: "env",
            index: None,
            entry: "".into(),
            why: None,
        });
        list.iter().map(|text| Given { value: Pattern::fixed(text), origin: origin.clone() }).collect()
    }

    fn wishes<'a>(
        inherit: &'a [Given<Pattern>],
        deny: &'a [Given<Pattern>],
        named: &'a [Named],
        all: bool,
    ) -> Wishes<'a> {
        Wishes {
            inherit,
            addresses: &[],
            open: false,
            deny,
            set: &[],
            named,
            inherit_all: all,
            allow_dangerous: false,
        }
    }

    fn host() -> impl Iterator<Item = (OsString, OsString)> {
        [("PATH", "/bin"), ("A_TOKEN", "s"), ("LD_PRELOAD", "x"), ("EDITOR", "vi")]
            .into_iter()
            .map(|(k, v)| (k.into(), v.into()))
    }

    #[test]
    fn secrets_and_hooks_stay_out() {
        let (inherit, deny) = (patterns(&["PATH"]), patterns(&["*_TOKEN"]));
        let names = |all| {
            let built = build(host(), &wishes(&inherit, &deny, &[], all)).unwrap();
            built.passed.into_keys().map(|k| k.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["PATH", "TERM"]);
        assert_eq!(names(true), ["EDITOR", "PATH", "TERM"]);
    }

    #[test]
    fn a_flag_that_lifts_a_denial_is_told_of() {
        let denied = patterns(&["A_*"]);
        let told = |text: &str| lifted(&[named(OsStr::new(text)).unwrap()], &denied);
        for text in ["A_TOKEN", "A_TOKEN=own"] {
            let said = told(text);
            assert!(said.len() == 1 && said[0].contains("A_TOKEN is passed on although env of profile"));
        }
        assert_eq!(told("EDITOR"), Vec::<String>::new());
    }

    #[test]
    fn the_user_can_name_a_secret_but_no_hook() {
        let secret = [named(OsStr::new("A_TOKEN")).unwrap()];
        let built = build(host(), &wishes(&[], &[], &secret, false)).unwrap();
        assert!(built.passed.contains_key(OsStr::new("A_TOKEN")));
        let hook = [named(OsStr::new("LD_AUDIT=x")).unwrap()];
        assert!(build(host(), &wishes(&[], &[], &hook, false)).is_err());
        let missing = [named(OsStr::new("NOT_THERE")).unwrap()];
        assert!(build(host(), &wishes(&[], &[], &missing, false)).is_err());
        assert!(named(OsStr::new("=x")).is_err());
    }

    #[test]
    fn addresses_pass_with_a_network_and_without_a_password() {
        let lists = (patterns(&["GOPROXY"]), patterns(&["http_proxy", "https_proxy", "GOPROXY"]));
        let host = |secret: &str| {
            let values =
                [("HTTP_PROXY", "http://p:1"), ("HTTPS_PROXY", secret), ("GOPROXY", "off"), ("OTHER", "x")];
            values.map(|(name, value)| (OsString::from(name), OsString::from(value))).into_iter()
        };
        let names = |secret, open, named: &[Named]| {
            let wishes = Wishes { addresses: &lists.1, open, ..wishes(&lists.0, &[], named, false) };
            let built = build(host(secret), &wishes).unwrap();
            let set = |name: &&OsString| *name != "PATH" && *name != "TERM";
            let passed: Vec<String> =
                built.passed.keys().filter(set).map(|name| name.to_string_lossy().into_owned()).collect();
            (passed.join(" "), built.withheld.len())
        };
        assert_eq!(names("http://p:1", false, &[]), ("GOPROXY".to_string(), 0));
        assert_eq!(names("http://p:1", true, &[]), ("GOPROXY HTTPS_PROXY HTTP_PROXY".to_string(), 0));
        assert_eq!(names("http://u:s@p:1", true, &[]), ("GOPROXY HTTP_PROXY".to_string(), 1));
        assert_eq!(names("http://u:s@p:1", false, &[]), ("GOPROXY".to_string(), 0));
        let own = [named(OsStr::new("HTTPS_PROXY")).unwrap()];
        assert_eq!(names("http://u:s@p:1", true, &own), ("GOPROXY HTTPS_PROXY HTTP_PROXY".to_string(), 0));
    }
}
