//! From a document to a profile.

use std::collections::BTreeMap;

use sbx_policy::calls::{Arch, Call};
use sbx_policy::errno;
use sbx_policy::restrictions::{Condition, Op, Width};

use crate::profile::calls::{DefaultAction, errno_word};
use crate::profile::conditions::OF_OCI;
use crate::profile::error::{Fault, Mistake, Place, Plain, nearest};
use crate::profile::foreign::meaning::{Calls, Meaning};
use crate::profile::foreign::oci::draft::Draft;
use crate::profile::foreign::oci::{ACTIONS, Action, is_elsewhere};
use crate::profile::foreign::{Losses, at};
use crate::profile::json::{Fields, Node};
use crate::profile::origin::Text;

/// The keys that every document has.
const TOP: [&str; 6] =
    ["defaultAction", "architectures", "flags", "listenerPath", "listenerMetadata", "syscalls"];

/// The keys of every rule.
const OF_RULE: [&str; 4] = ["names", "action", "errnoRet", "args"];

/// Whose documents they are. A reader passes over the keys of the others: a rule with a condition of Docker's holds
/// there in any case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The Security Profiles Operator.
    Spo,
    /// OCI's runtime specification.
    Oci,
    /// Docker and podman. Old documents name one call by `name`.
    Docker,
}

impl Dialect {
    /// The keys of a document.
    fn keys(self) -> Vec<&'static str> {
        let more: &[&str] = match self {
            Dialect::Spo => &[],
            Dialect::Oci => &["defaultErrnoRet"],
            Dialect::Docker => &["defaultErrnoRet", "defaultErrno", "archMap"],
        };
        [&TOP[..], more].concat()
    }

    /// The keys of its rules.
    fn keys_of_rule(self) -> Vec<&'static str> {
        let more: &[&str] = match self {
            Dialect::Spo | Dialect::Oci => &[],
            Dialect::Docker => &["errno", "comment", "includes", "excludes", "name"],
        };
        [&OF_RULE[..], more].concat()
    }
}

/// Reads a document.
pub fn read(node: Node, place: &Place, dialect: Dialect, losses: &mut Losses) -> Result<Meaning, Fault> {
    let mut fields = node.fields(place, &dialect.keys())?;
    let error = error(&mut fields, "defaultErrnoRet", "defaultErrno")?;
    let default = fields.require("defaultAction", |node, place| default(node, place, error, losses))?;
    maybe(&mut fields, "architectures", |node, place| {
        node.list(place, |node, place| architecture(&node.string(place)?, place, losses)).map(|_| ())
    })?;
    maybe(&mut fields, "archMap", |node, place| {
        node.list(place, |node, place| arch_map(node, place, losses)).map(|_| ())
    })?;
    maybe(&mut fields, "flags", |node, place| {
        node.list(place, |node, place| {
            let flag = node.string(place)?;
            losses.note(place, format_args!("flag {} is the run's own choice", Plain(&flag)));
            Ok(())
        })
        .map(|_| ())
    })?;
    for key in ["listenerPath", "listenerMetadata"] {
        maybe(&mut fields, key, |node, place| {
            node.string(place)?;
            losses.note(place, "nobody else can be asked about calls");
            Ok(())
        })?;
    }
    let mut drafts: BTreeMap<Call, Draft> = BTreeMap::new();
    maybe(&mut fields, "syscalls", |node, place| {
        node.list(place, |node, place| rule(node, place, (dialect, default), &mut drafts, losses)).map(|_| ())
    })?;
    // A run under a profile that allows by default has no filter: the list of denials becomes one of permissions.
    if default == DefaultAction::Allow {
        for call in Call::all() {
            drafts.entry(call).or_default();
        }
    }
    let mut calls = Calls::default();
    for (call, draft) in drafts {
        draft.finish(call, default, losses).write(call, &mut calls.allow, &mut calls.deny, &mut calls.log);
    }
    calls.default = Some(match default {
        DefaultAction::Allow | DefaultAction::Errno(errno::EPERM) => "errno".to_string(),
        other => other.to_string(),
    });
    Ok(Meaning {
        description: "made of an OCI seccomp document, which speaks of system calls only",
        calls: Some(calls),
        ..Meaning::default()
    })
}

/// Takes a key whose value may also be null.
fn maybe<T>(
    fields: &mut Fields,
    key: &str,
    read: impl FnOnce(Node, &Place) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let value = fields.take(key, |node, place| match node {
        Node::Null => Ok(None),
        node => read(node, place).map(Some),
    });
    Ok(value?.flatten())
}

/// An error number by its number or, as podman writes it too, by its name.
fn error(fields: &mut Fields, number: &str, name: &str) -> Result<Option<u16>, Fault> {
    let by_number = maybe(fields, number, |node, place| {
        let value = node.integer(place)?;
        let known = u16::try_from(value).ok().filter(|value| (1..=errno::MAX).contains(value));
        known.ok_or_else(|| place.fault(format!("{value} is no error number: 1 to {}", errno::MAX)))
    })?;
    let by_name = maybe(fields, name, |node, place| {
        let text = node.string(place)?;
        if text.is_empty() {
            return Ok(None);
        }
        let known = errno::parse(text.as_bytes()).map(Some);
        known.ok_or_else(|| {
            let (near, rest) = (nearest(&text, errno::names()), String::new());
            place.fault(Mistake::Unknown { what: "error", word: text.into_owned(), near, rest })
        })
    })?;
    Ok(by_number.or(by_name.flatten()))
}

fn default(
    node: Node,
    place: &Place,
    error: Option<u16>,
    losses: &mut Losses,
) -> Result<DefaultAction, Fault> {
    Ok(match node.word(place, &ACTIONS)? {
        Action::Allow => DefaultAction::Allow,
        Action::Log => DefaultAction::Log,
        Action::Errno(number) => DefaultAction::Errno(error.unwrap_or(number)),
        Action::KillProcess => DefaultAction::Kill,
        Action::Other(word @ ("SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD")) => {
            losses.note(place, format_args!("{word} ends one thread; a profile can end the process only"));
            DefaultAction::Kill
        }
        Action::Other(word) => {
            losses.note(place, format_args!("{word} has no counterpart; the calls fail with EPERM instead"));
            DefaultAction::Errno(errno::EPERM)
        }
    })
}

/// A run has the machine's own architecture alone: programs of 32 bits are killed.
fn architecture(name: &str, place: &Place, losses: &mut Losses) -> Result<(), Fault> {
    match name {
        "SCMP_ARCH_X86" | "SCMP_ARCH_X32" | "SCMP_ARCH_ARM" => {
            losses.note(place, format_args!("programs for {name} cannot be run"));
            Ok(())
        }
        name if is_architecture(name) => Ok(()),
        name => {
            let known = ARCHITECTURES.split_ascii_whitespace();
            let near = name.strip_prefix("SCMP_ARCH_").and_then(|name| nearest(name, known));
            let near = near.map_or(String::new(), |near| format!(" (did you mean 'SCMP_ARCH_{near}'?)"));
            Err(place.fault(format!("'{}' is no architecture{near}", Plain(name))))
        }
    }
}

fn is_architecture(name: &str) -> bool {
    let is_in = |bare| ARCHITECTURES.split_ascii_whitespace().any(|known| known == bare);
    name.strip_prefix("SCMP_ARCH_").is_some_and(is_in)
}

/// The architectures of libseccomp.
const ARCHITECTURES: &str = "\
    NATIVE X86 X86_64 X32 ARM AARCH64 LOONGARCH64 M68K MIPS MIPS64 MIPS64N32 MIPSEL MIPSEL64 MIPSEL64N32 \
    PARISC PARISC64 PPC PPC64 PPC64LE RISCV64 S390 S390X SH SHEB";

/// The same by the names that Docker and podman have for them, in rules.
const MACHINES: &str = "\
    386 amd64 arm arm64 loong64 loongarch64 m68k mips mips64 mips64le mips64n32 mips64p32 mips64p32le mipsel \
    mipsel64 mipsel64n32 mips3l64n32 mipsle parisc parisc64 ppc ppc64 ppc64le riscv64 s390 s390x sh sheb x32 x86";

fn arch_map(node: Node, place: &Place, losses: &mut Losses) -> Result<(), Fault> {
    let mut fields = node.fields(place, &["architecture", "subArchitectures"])?;
    let main = fields.require("architecture", Node::string)?;
    let own = matches!(&*main, "SCMP_ARCH_X86_64" | "SCMP_ARCH_AARCH64");
    // What another machine would run is no loss.
    let mut nowhere = Losses::default();
    architecture(&main, &Place::Key(place, "architecture"), &mut nowhere)?;
    let losses = if own { losses } else { &mut nowhere };
    maybe(&mut fields, "subArchitectures", |node, place| {
        node.list(place, |node, place| architecture(&node.string(place)?, place, losses)).map(|_| ())
    })?;
    Ok(())
}

fn rule(
    node: Node,
    place: &Place,
    (dialect, default): (Dialect, DefaultAction),
    drafts: &mut BTreeMap<Call, Draft>,
    losses: &mut Losses,
) -> Result<(), Fault> {
    let mut fields = node.fields(place, &dialect.keys_of_rule())?;
    let error = error(&mut fields, "errnoRet", "errno")?;
    let action = match fields.require("action", |node, place| node.word(place, &ACTIONS))? {
        Action::Errno(number) => Action::Errno(error.unwrap_or(number)),
        other => other,
    };
    let one = maybe(&mut fields, "name", Node::string)?;
    let many = maybe(&mut fields, "names", |node, place| node.list(place, Node::string))?.unwrap_or_default();
    if one.is_some() && !many.is_empty() {
        return Err(place.fault("it has both 'name' and 'names', which Docker refuses"));
    }
    let names: Vec<Text> = one.into_iter().chain(many).collect();
    if names.is_empty() {
        return Err(place.fault("it names no call: the key 'names' is missing or empty"));
    }
    let args = maybe(&mut fields, "args", |node, place| node.list(place, condition))?.unwrap_or_default();
    maybe(&mut fields, "comment", Node::string)?;
    let mut scope = Scope { x86_64: true, aarch64: true, unknown: None };
    for (key, includes) in [("includes", true), ("excludes", false)] {
        maybe(&mut fields, key, |node, place| scope.narrow(node, place, includes))?;
    }
    if let Some(version) = &scope.unknown {
        losses.note(
            place,
            format_args!("whether the kernel is Linux {} is not known beforehand", Plain(version)),
        );
        // A permission is left out, and anything else holds on every kernel.
        if action == Action::Allow {
            return Ok(());
        }
    }
    for name in &names {
        let Some(call) = Call::named(name.as_bytes()) else {
            if !is_elsewhere(name) {
                let near = losses.hint(name, Call::all().map(Call::name));
                losses.note(at(place, name), format_args!("there is no such call{near}"));
            }
            continue;
        };
        let has = |arch| call.number(arch).is_some();
        let (x86_64, aarch64) = (has(Arch::X86_64), has(Arch::Aarch64));
        if !(scope.x86_64 && x86_64 || scope.aarch64 && aarch64) {
            continue;
        }
        if x86_64 && !scope.x86_64 || aarch64 && !scope.aarch64 {
            losses.note(at(place, name), "a rule of a profile holds on every architecture");
            if action == Action::Allow {
                continue;
            }
        }
        drafts.entry(call).or_default().add(action, &args, default, &at(place, name), losses);
    }
    Ok(())
}

/// Where a rule holds.
struct Scope {
    x86_64: bool,
    aarch64: bool,
    /// A version of the kernel that decides, and that a run may or may not have.
    unknown: Option<Text>,
}

/// The oldest kernel that refused calls are reported on. What wants an older one always gets it.
const OLDEST: (u32, u32) = (5, 0);

impl Scope {
    fn narrow(&mut self, node: Node, place: &Place, includes: bool) -> Result<(), Fault> {
        let mut fields = node.fields(place, &["caps", "arches", "minKernel"])?;
        let list = |node: Node, place: &Place| node.list(place, Node::string);
        let caps = maybe(&mut fields, "caps", list)?.unwrap_or_default();
        let arches = maybe(&mut fields, "arches", |node, place| node.list(place, machine))?;
        let arches = arches.unwrap_or_default();
        let kernel = maybe(&mut fields, "minKernel", |node, place| {
            let text = node.string(place)?;
            let version = version(&text);
            let wrong = || place.fault(format!("'{}' is no version, like 4.8", Plain(&text)));
            if text.is_empty() {
                Ok(None)
            } else {
                version.ok_or_else(wrong).map(|version| Some((version, text)))
            }
        })?;
        // A command of a run has no capabilities, so nothing that excludes one is excluded.
        if includes && !caps.is_empty() {
            (self.x86_64, self.aarch64) = (false, false);
        }
        if !arches.is_empty() {
            let holds = |name| arches.iter().any(|arch| arch == name) == includes;
            self.x86_64 &= holds("amd64");
            self.aarch64 &= holds("arm64");
        }
        match kernel.flatten() {
            Some((version, _)) if version <= OLDEST && includes => {}
            Some((version, _)) if version <= OLDEST => (self.x86_64, self.aarch64) = (false, false),
            Some((_, text)) => self.unknown = Some(text),
            None => {}
        }
        Ok(())
    }
}

/// A machine that a rule is about. A rule about none would be left out.
fn machine(node: Node, place: &Place) -> Result<Text, Fault> {
    let name = node.string(place)?;
    match MACHINES.split_ascii_whitespace().any(|known| known == &*name) {
        true => Ok(name),
        false => Err(place.fault(format!("'{}' is no architecture, like amd64", Plain(&name)))),
    }
}

fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// One comparison, of 64 bits. The first value of a masked one is its mask, which libseccomp lays over the second too.
fn condition(node: Node, place: &Place) -> Result<Condition, Fault> {
    let mut fields = node.fields(place, &["index", "value", "valueTwo", "op"])?;
    let index = fields.require("index", Node::integer)?;
    let known = u8::try_from(index).ok().filter(|index| *index <= 5);
    let arg = known.ok_or_else(|| place.fault(format!("{index} is no argument: 0 to 5")))?;
    let value = fields.require("value", Node::integer)?;
    let second = maybe(&mut fields, "valueTwo", Node::integer)?.unwrap_or(0);
    let (op, value) = match fields.require("op", |node, place| node.word(place, OF_OCI))? {
        Op::MaskedEq(_) => (Op::MaskedEq(value), second & value),
        op => (op, value),
    };
    Ok(Condition { arg, width: Width::Qword, op, value })
}

/// The error of a denial, as an entry names it.
pub fn word(number: u16) -> String {
    errno_word(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::json;

    /// Why a document with these keys beside those that all have, in itself or in its rule, cannot be read.
    fn refusal(dialect: Dialect, top: &str, of_rule: &str) -> Option<String> {
        let text = format!(
            "{{\"defaultAction\":\"SCMP_ACT_ALLOW\"{top},\"syscalls\":\
             [{{\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":13,\"args\":[]{of_rule}}}]}}"
        );
        let node = json::parse(text.as_bytes()).unwrap();
        let meaning = read(node, &Place::Top, dialect, &mut Losses::default());
        meaning.err().map(|fault| fault.to_string())
    }

    /// Their readers would pass over them: a refusal that Docker leaves out holds there.
    #[test]
    fn keys_of_dockers_are_none_of_the_others() {
        for (key, value) in [
            ("name", "\"mount\""),
            ("comment", "\"x\""),
            ("includes", "{\"caps\":[\"CAP_SYS_ADMIN\"]}"),
            ("excludes", "{\"arches\":[\"amd64\"]}"),
            ("errno", "\"ENOSYS\""),
        ] {
            let names = if key == "name" { "" } else { ",\"names\":[\"mount\"]" };
            let of_rule = format!("{names},\"{key}\":{value}");
            assert_eq!(refusal(Dialect::Docker, "", &of_rule), None, "{key}");
            for dialect in [Dialect::Oci, Dialect::Spo] {
                let why = refusal(dialect, "", &of_rule).unwrap();
                assert!(why.starts_with(&format!("syscalls[0]: unknown key '{key}'")), "{why}");
            }
        }
    }

    #[test]
    fn each_document_has_keys_of_its_own() {
        let of_rule = ",\"names\":[\"mount\"]";
        for (key, value, dialects) in [
            ("flags", "[]", &[Dialect::Docker, Dialect::Oci, Dialect::Spo][..]),
            ("defaultErrnoRet", "38", &[Dialect::Docker, Dialect::Oci]),
            ("defaultErrno", "\"ENOSYS\"", &[Dialect::Docker]),
            ("archMap", "[]", &[Dialect::Docker]),
        ] {
            for dialect in [Dialect::Docker, Dialect::Oci, Dialect::Spo] {
                let why = refusal(dialect, &format!(",\"{key}\":{value}"), of_rule);
                let unknown = why.is_some_and(|why| why.starts_with(&format!("unknown key '{key}'")));
                assert_eq!(unknown, !dialects.contains(&dialect), "{key}");
            }
        }
    }
}
