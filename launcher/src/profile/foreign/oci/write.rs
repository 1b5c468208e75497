//! From a profile's calls to a document.

use sbx_policy::calls::{Arch, Call};
use sbx_policy::errno::EPERM;
use sbx_policy::restrictions::{self, Condition, Op, RESTRICTIONS, Width};
use sbx_policy::rules::{Grant, Rules};
use serde_json::{Map, Value, json};

use crate::profile::calls::{CallRules, DefaultAction, Grants, When};
use crate::profile::foreign::Losses;
use crate::profile::foreign::oci::cubes::{self, Cube, MOST, TooMany};

/// How far a call is allowed or denied.
#[derive(Clone, Debug, Default)]
pub enum Extent {
    /// Not at all.
    #[default]
    None,
    /// Whatever its arguments are.
    All,
    /// If all of one of these lists hold.
    Some(Vec<Vec<Condition>>),
}

/// What a filter says about one call.
#[derive(Clone, Debug)]
pub struct Asked {
    call: Call,
    allow: Extent,
    deny: Extent,
    errno: Option<u16>,
    log: bool,
    /// The named restrictions of `allow` and of `deny`. Empty for comparisons without a name.
    named: [Vec<&'static str>; 2],
}

impl Asked {
    /// The call.
    pub fn call(&self) -> Call {
        self.call
    }

    /// How far it is allowed.
    pub fn allow(&self) -> &Extent {
        &self.allow
    }

    /// How far it is denied.
    pub fn deny(&self) -> &Extent {
        &self.deny
    }

    /// The error of a denial, if it has one of its own.
    pub fn errno(&self) -> Option<u16> {
        self.errno
    }

    /// Whether it is noted where it is allowed.
    pub fn is_noted(&self) -> bool {
        self.log
    }

    /// The restrictions under which it is allowed, by their names; `""` stands for comparisons without one.
    pub fn allowed_with(&self) -> &[&'static str] {
        &self.named[0]
    }

    /// The same of its denial.
    pub fn denied_with(&self) -> &[&'static str] {
        &self.named[1]
    }

    /// What the table of rules says, with the conditions that it has no room for.
    pub fn of(rules: &Rules, said: Option<&CallRules>, call: Call, namespaces: bool) -> Option<Asked> {
        let row = rules.row(call)?;
        let names = |grant: Grant, said: Option<&Grants>| {
            let Grant::Some(mask) = grant else { return Vec::new() };
            let places = restrictions::of_call(call).enumerate().filter(|(bit, _)| mask & 1 << bit != 0);
            let alternatives = said.map_or(&[][..], Grants::alternatives).iter();
            let free = alternatives.filter(|one| matches!(one.when, When::Free(_))).map(|_| "");
            places.map(|(_, place)| restrictions::name(place)).chain(free.take(1)).collect()
        };
        let extent = |grant: Grant, said: Option<&Grants>| match grant {
            Grant::None => Extent::None,
            Grant::All => Extent::All,
            Grant::Some(mask) => {
                let places = restrictions::of_call(call).enumerate().filter(|(bit, _)| mask & 1 << bit != 0);
                let named = places.filter_map(|(_, place)| RESTRICTIONS.get(place)).flat_map(|r| r.any);
                let alternatives = said.map_or(&[][..], Grants::alternatives).iter();
                let free = alternatives.filter_map(|one| match &one.when {
                    When::Free(all) => Some(all.to_vec()),
                    When::Named(_) => None,
                });
                Extent::Some(named.map(|all| all.to_vec()).chain(free).collect())
            }
        };
        let (allowed, denied) = (said.map(|said| said.allowed(namespaces)), said.map(|said| &said.deny));
        // The table has no room for comparisons: where nothing else is denied, it has no denial.
        let compares =
            |said: &Grants| said.alternatives().iter().any(|one| matches!(one.when, When::Free(_)));
        let deny = match row.deny {
            Grant::None if denied.is_some_and(compares) => Grant::Some(0),
            deny => deny,
        };
        Some(Asked {
            call,
            named: [names(row.allow, allowed), names(deny, denied)],
            allow: extent(row.allow, allowed),
            deny: extent(deny, denied),
            errno: (row.errno != 0).then_some(row.errno),
            log: row.log,
        })
    }
}

/// A rule of the document: what happens, and with which arguments.
type Rule = (Value, Option<Value>);

/// Whether all that one filter lets through, another one does too; `None` where that is too much to compare.
pub fn is_covered(one: Option<&Asked>, by: Option<&Asked>) -> Option<bool> {
    let (one, by) = (passing(one).ok()?, passing(by).ok()?);
    cubes::minus(one, &by).ok().map(|rest| rest.is_empty())
}

/// The arguments with which a call is let through.
fn passing(asked: Option<&Asked>) -> Result<Vec<Cube>, TooMany> {
    let Some(asked) = asked else { return Ok(Vec::new()) };
    cubes::minus(cubes(&asked.allow)?, &cubes(&asked.deny)?)
}

fn cubes(extent: &Extent) -> Result<Vec<Cube>, TooMany> {
    match extent {
        Extent::None => Ok(Vec::new()),
        Extent::All => Ok(vec![Cube::default()]),
        Extent::Some(all) => cubes::of_all(all),
    }
}

/// Writes a document.
pub fn write(calls: &[Asked], default: DefaultAction, losses: &mut Losses) -> Value {
    // Calls with one and the same rule share an entry.
    let mut entries: Vec<(Rule, Vec<&str>)> = Vec::new();
    for asked in calls {
        match rules(asked, default) {
            Ok(rules) => {
                for rule in rules {
                    match entries.iter_mut().find(|(known, _)| rule.1.is_none() && *known == rule) {
                        Some((_, names)) => names.push(asked.call.name()),
                        None => entries.push((rule, vec![asked.call.name()])),
                    }
                }
            }
            Err(TooMany) => losses.note(
                asked.call.name(),
                format_args!("its conditions take more than {MOST} rules, so it is refused"),
            ),
        }
    }
    let entry = |((action, args), names): (Rule, Vec<&str>)| {
        let mut entry = json!({ "names": names });
        extend(&mut entry, action);
        if let Some(args) = args {
            entry["args"] = args;
        }
        entry
    };
    let mut document = action(default, "defaultAction", "defaultErrnoRet");
    document["syscalls"] = entries.into_iter().map(entry).collect();
    document
}

fn extend(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}

fn action(action: DefaultAction, key: &str, error: &str) -> Value {
    let (word, errno) = match action {
        DefaultAction::Allow => ("SCMP_ACT_ALLOW", None),
        DefaultAction::Log => ("SCMP_ACT_LOG", None),
        DefaultAction::Kill => ("SCMP_ACT_KILL_PROCESS", None),
        DefaultAction::Errno(number) => ("SCMP_ACT_ERRNO", Some(number)),
    };
    let mut object = Map::from_iter([(key.to_string(), json!(word))]);
    object.extend(errno.map(|number| (error.to_string(), json!(number))));
    Value::Object(object)
}

/// The rules for one call: what is allowed, what is denied, and what is left, each unless it is what happens anyway.
fn rules(asked: &Asked, default: DefaultAction) -> Result<Vec<Rule>, TooMany> {
    let violation = if default == DefaultAction::Allow { DefaultAction::Errno(EPERM) } else { default };
    let permission = if asked.log { DefaultAction::Log } else { DefaultAction::Allow };
    let refusal = asked.errno.map_or(violation, DefaultAction::Errno);
    let rest = match (&asked.allow, &asked.deny) {
        (Extent::None, _) if asked.log => DefaultAction::Log,
        (Extent::None, _) => default,
        _ => violation,
    };
    if let (Extent::Some(all), Extent::None) = (&asked.allow, &asked.deny)
        && rest == default
        && permission != default
        && let Some(rules) = natively(all)
    {
        return Ok(rules
            .into_iter()
            .map(|args| (action(permission, "action", "errnoRet"), Some(args)))
            .collect());
    }
    let everything = || vec![Cube::default()];
    let denied = cubes(&asked.deny)?;
    let allowed = cubes(&asked.allow)?;
    let mut sets = vec![(denied.clone(), refusal)];
    if permission != default {
        sets.push((cubes::minus(allowed.clone(), &denied)?, permission));
    }
    if rest != default {
        sets.push((cubes::minus(cubes::minus(everything(), &denied)?, &allowed)?, rest));
    }
    let mut rules = Vec::new();
    for (cubes, what) in sets.into_iter().filter(|(_, what)| *what != default) {
        let what = action(what, "action", "errnoRet");
        if cubes.contains(&Cube::default()) {
            rules.push((what, None));
            continue;
        }
        rules.extend(cubes.iter().map(|cube| {
            let args = cube.comparisons().map(|(arg, mask, value)| masked(arg, mask, value));
            (what.clone(), Some(args.collect()))
        }));
    }
    Ok(rules)
}

fn masked(arg: usize, mask: u64, value: u64) -> Value {
    if mask == u64::MAX {
        return json!({ "index": arg, "value": value, "op": "SCMP_CMP_EQ" });
    }
    json!({ "index": arg, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ" })
}

/// Conditions as they stand, where every comparison is of 64 bits or masked, and none shares its argument.
fn natively(alternatives: &[Vec<Condition>]) -> Option<Vec<Value>> {
    let native = |c: &Condition| {
        let arg = usize::from(c.arg);
        let plain = |op: &str| json!({ "index": arg, "value": c.value, "op": op });
        Some(match (c.op, c.width) {
            (Op::MaskedEq(mask), _) => masked(arg, mask, c.value),
            (Op::Eq, Width::Dword) => masked(arg, u64::from(u32::MAX), c.value),
            (_, Width::Dword) => return None,
            (Op::Eq, _) => plain("SCMP_CMP_EQ"),
            (Op::Ne, _) => plain("SCMP_CMP_NE"),
            (Op::Lt, _) => plain("SCMP_CMP_LT"),
            (Op::Le, _) => plain("SCMP_CMP_LE"),
            (Op::Gt, _) => plain("SCMP_CMP_GT"),
            (Op::Ge, _) => plain("SCMP_CMP_GE"),
        })
    };
    let rule = |all: &Vec<Condition>| {
        let shared =
            all.iter().enumerate().any(|(at, one)| all[..at].iter().any(|other| other.arg == one.arg));
        if shared { None } else { all.iter().map(native).collect::<Option<Value>>() }
    };
    alternatives.iter().map(rule).collect()
}

/// What of one call the tables of the architectures say: the first that has the call.
pub fn of_first(tables: &[(Arch, &Rules)], said: Option<&CallRules>, call: Call) -> Option<Asked> {
    let (_, rules) = tables.iter().find(|(arch, _)| call.number(*arch).is_some())?;
    Asked::of(rules, said, call, false)
}
