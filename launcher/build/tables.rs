//! Writes the built-in profiles as Rust source: values that need neither parsing nor memory when a run begins.

use crate::profile::{
    Alternative, Bound, CallRules, Given, Grants, Limits, List, Location, Origin, Pattern, Profile, Search,
    Shared, Text, When,
};
use sbx_policy::calls::Call;
use sbx_policy::restrictions::{Condition, Op};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Reads every built-in profile, and leaves `profiles.rs` in `out`.
pub fn write(out: &Path) {
    for path in ["src/profile", "../profiles"] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rustc-check-cfg=cfg(built_in_tables)");
    println!("cargo::rustc-cfg=built_in_tables");
    let mut tables = Tables::default();
    let profiles: Vec<String> = sbx_profiles::NAMES
        .iter()
        .map(|name| {
            let profile = crate::profile::load(OsStr::new(name), &Search::default());
            tables.profile(&profile.unwrap_or_else(|error| panic!("{error}")))
        })
        .collect();
    let source = format!(
        "{}pub(super) static PROFILES: [Profile; {}] = [{}];\n",
        tables.source,
        profiles.len(),
        profiles.join(", ")
    );
    fs::write(out.join("profiles.rs"), source).expect("OUT_DIR can be written");
}

/// The statics so far. What is written twice is one.
#[derive(Default)]
struct Tables {
    source: String,
    names: HashMap<String, String>,
}

impl Tables {
    /// A static of its own; the expression is its name.
    fn name(&mut self, type_name: &str, value: String) -> String {
        let key = format!("{type_name} = {value}");
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let name = format!("T{}", self.names.len());
        self.source.push_str(&format!("static {name}: {key};\n"));
        self.names.insert(key, name.clone());
        name
    }

    fn list<T: Clone>(
        &mut self,
        type_name: &str,
        list: &[T],
        mut each: impl FnMut(&mut Tables, &T) -> String,
    ) -> String {
        if list.is_empty() {
            return "Cow::Borrowed(&[])".to_string();
        }
        let items: Vec<String> = list.iter().map(|item| each(self, item)).collect();
        let name = self.name(&format!("[{type_name}; {}]", items.len()), format!("[{}]", items.join(", ")));
        format!("Cow::Borrowed(&{name})")
    }

    fn origin(&mut self, origin: &Shared<Origin>) -> String {
        let Origin { profile, built_in, key, index, entry, why } = &**origin;
        let why = why.as_ref().map_or("None".to_string(), |why| format!("Some({})", text(why)));
        let entry = text(entry);
        let value = format!(
            "Origin {{ profile: Shared::Fixed({:?}), built_in: {built_in}, key: {key:?}, index: {index:?}, entry: {entry}, why: {why} }}",
            &**profile
        );
        format!("Shared::Fixed(&{})", self.name("Origin", value))
    }

    fn given<T>(&mut self, given: &Given<T>, value: impl Fn(&T) -> String) -> String {
        let origin = self.origin(&given.origin);
        format!("Given {{ value: {}, origin: {origin} }}", value(&given.value))
    }

    fn optional<T>(&mut self, given: &Option<Given<T>>, value: impl Fn(&T) -> String) -> String {
        given.as_ref().map_or("None".to_string(), |given| format!("Some({})", self.given(given, value)))
    }

    fn locations(&mut self, list: &List<Given<Location>>) -> String {
        self.list("Given<Location>", list, |tables, entry| tables.given(entry, location))
    }

    fn texts(&mut self, list: &List<Given<Text>>) -> String {
        self.list("Given<Text>", list, |tables, entry| tables.given(entry, |value| text(value)))
    }

    fn patterns(&mut self, list: &List<Given<Pattern>>) -> String {
        self.list("Given<Pattern>", list, |tables, entry| {
            tables.given(entry, |pattern| format!("Pattern::fixed({:?})", &**pattern))
        })
    }

    fn profile(&mut self, profile: &Profile) -> String {
        let Profile {
            name,
            source: _,
            files: _,
            description,
            lineage,
            syscalls,
            paths,
            network,
            env,
            limits,
            commands,
            static_programs,
            namespaces,
            require,
        } = profile;
        let lineage = self.list("Shared<str>", lineage, |_, name| format!("Shared::Fixed({:?})", &**name));
        let calls = self
            .list("(Call, CallRules)", &syscalls.calls.0, |tables, (call, rules)| tables.rules(*call, rules));
        let default = self.optional(&syscalls.default, variant("DefaultAction"));
        let read = self.locations(&paths.read);
        let execute = self.locations(&paths.execute);
        let write = self.locations(&paths.write);
        let deny = self.locations(&paths.deny);
        let protect = self.list("Given<Protection>", &paths.protect, |tables, entry| {
            let readers: Vec<String> = entry.readers.iter().map(location).collect();
            let path = location(&entry.path);
            tables.given(entry, |_| {
                format!("Protection {{ path: {path}, readers: Cow::Borrowed(&[{}]) }}", readers.join(", "))
            })
        });
        let mode = self.optional(&network.mode, variant("NetworkMode"));
        let connect = self.list("Given<Endpoint>", &network.connect, |tables, entry| {
            tables.given(entry, |end| format!("Endpoint {{ host: {}, port: {} }}", text(&end.host), end.port))
        });
        let bind =
            self.list("Given<u16>", &network.bind, |tables, entry| tables.given(entry, u16::to_string));
        let unix = self.locations(&network.unix);
        let inherit = self.patterns(&env.inherit);
        let never = self.patterns(&env.deny);
        let set = self.list("(Text, Given<Location>)", &env.set, |tables, (name, value)| {
            format!("({}, {})", text(name), tables.given(value, location))
        });
        let limits = self.limits(limits);
        let (allow, block) = (self.texts(&commands.allow), self.texts(&commands.block));
        let static_programs = self.optional(static_programs, variant("StaticMode"));
        let namespaces = self.optional(namespaces, variant("Namespaces"));
        let require = self.optional(require, variant("Level"));
        let (name, description) = (text(name), text(description));
        format!(
            "Profile {{ name: {name}, source: Source::BuiltIn, files: Vec::new(), description: {description}, lineage: {lineage}, \
             syscalls: Syscalls {{ default: {default}, calls: CallTable({calls}) }}, \
             paths: Paths {{ read: {read}, execute: {execute}, write: {write}, deny: {deny}, protect: {protect} }}, \
             network: Network {{ mode: {mode}, connect: {connect}, bind: {bind}, unix: {unix} }}, \
             env: Env {{ inherit: {inherit}, set: {set}, deny: {never} }}, limits: {limits}, \
             commands: Commands {{ allow: {allow}, block: {block} }}, \
             static_programs: {static_programs}, namespaces: {namespaces}, require: {require} }}"
        )
    }

    fn rules(&mut self, call: Call, rules: &CallRules) -> String {
        let CallRules { allow, deny, errno, log } = rules;
        let (allow, deny) = (self.grants(allow), self.grants(deny));
        let log = log.as_ref().map_or("None".to_string(), |origin| format!("Some({})", self.origin(origin)));
        let place = call.place();
        format!(
            "(Call::at({place}), CallRules {{ allow: {allow}, deny: {deny}, errno: {errno:?}, log: {log} }})"
        )
    }

    fn grants(&mut self, grants: &Grants) -> String {
        match grants {
            Grants::None => "Grants::None".to_string(),
            Grants::All(origin) => format!("Grants::All({})", self.origin(origin)),
            Grants::Some(alternatives) => {
                let list = self.list("Alternative", alternatives, |tables, Alternative { when, origin }| {
                    let origin = tables.origin(origin);
                    format!("Alternative {{ when: {}, origin: {origin} }}", tables.when(when))
                });
                format!("Grants::Some({list})")
            }
        }
    }

    fn when(&mut self, when: &When) -> String {
        match when {
            When::Named(place) => format!("When::Named({place})"),
            When::Free(conditions) => {
                let list = self.list("Condition", conditions, |_, condition| {
                    let Condition { arg, width, op, value } = condition;
                    let op = match op {
                        Op::MaskedEq(mask) => format!("MaskedEq({mask})"),
                        other => format!("{other:?}"),
                    };
                    format!(
                        "Condition {{ arg: {arg}, width: Width::{width:?}, op: Op::{op}, value: {value} }}"
                    )
                });
                format!("When::Free({list})")
            }
        }
    }

    fn limits(&mut self, limits: &Limits) -> String {
        let Limits { timeout, output, processes, open_files, file_size, memory, cpu } = limits;
        let time = |limit: &Bound<Duration>| {
            bound(*limit, |time| format!("std::time::Duration::from_nanos({})", time.as_nanos()))
        };
        let (timeout, cpu) = (self.optional(timeout, time), self.optional(cpu, time));
        let mut number =
            |limit| self.optional(limit, |limit| bound(*limit, |number: u64| number.to_string()));
        format!(
            "Limits {{ timeout: {timeout}, output: {}, processes: {}, open_files: {}, file_size: {}, memory: {}, cpu: {cpu} }}",
            number(output),
            number(processes),
            number(open_files),
            number(file_size),
            number(memory)
        )
    }
}

fn text(text: &str) -> String {
    format!("Cow::Borrowed({text:?})")
}

fn location(location: &Location) -> String {
    let base = location.base.map_or("None".to_string(), |base| format!("Some(Variable::{base:?})"));
    format!("Location {{ base: {base}, rest: {} }}", text(&location.rest))
}

fn bound<T>(bound: Bound<T>, value: impl Fn(T) -> String) -> String {
    match bound {
        Bound::At(limit) => format!("super::units::Bound::At({})", value(limit)),
        Bound::Unlimited => "super::units::Bound::Unlimited".to_string(),
    }
}

/// A variant of an enumeration, as `Debug` writes it.
fn variant<T: Debug>(type_name: &'static str) -> impl Fn(&T) -> String {
    move |value| format!("{type_name}::{value:?}")
}
