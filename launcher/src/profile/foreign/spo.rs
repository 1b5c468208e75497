//! `SeccompProfile`s of Kubernetes' Security Profiles Operator: an OCI filter as a resource of a cluster.

use serde_json::{Map, Value, json};

use crate::profile::calls::DefaultAction;
use crate::profile::error::{Fault, Place, Plain, ProfileCause};
use crate::profile::foreign::languages::Exported;
use crate::profile::foreign::meaning::Meaning;
use crate::profile::foreign::{Losses, oci, rest};
use crate::profile::json::{self, Fields, Node};
use crate::text::json_document;

/// The group of the resource; a version follows.
const GROUP: &str = "security-profiles-operator.x-k8s.io/";
/// The version that is written.
const VERSION: &str = "v1";
/// The versions whose filters are alike.
const KNOWN: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Reads a resource, as `kubectl get -o json` prints it.
pub fn read(text: &[u8], losses: &mut Losses) -> Result<Meaning, ProfileCause> {
    let top = Place::Top;
    let mut fields =
        json::parse(text)?.fields(&top, &["apiVersion", "kind", "metadata", "spec", "status"])?;
    fields.require("apiVersion", |node, place| {
        let version = node.string(place)?;
        let known = version.strip_prefix(GROUP).is_some_and(|version| KNOWN.contains(&version));
        if known {
            Ok(())
        } else {
            Err(place.fault(format!("'{}' is not {GROUP}{VERSION}", Plain(&version))))
        }
    })?;
    fields.require("kind", |node, place| node.word(place, &[("SeccompProfile", ())]))?;
    for key in ["metadata", "status"] {
        fields.take(key, |node, place| node.object(place).map(|_| ()))?;
    }
    Ok(fields.require("spec", |node, place| spec(node, place, losses))?)
}

/// The filter, without what the operator adds to it.
fn spec(node: Node, place: &Place, losses: &mut Losses) -> Result<Meaning, Fault> {
    let pairs = node.object(place)?;
    let (own, filter): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(key, _)| OWN.contains(&&**key));
    let mut own = Node::Object(own).fields(place, &OWN)?;
    lose(&mut own, "baseProfileName", "what the profile of this name allows is not looked up", losses)?;
    lose(&mut own, "state", "a profile of a file is always there", losses)?;
    own.take("disabled", |node, place| {
        losses.note(place, "a profile of a file is always there");
        node.truth(place)
    })?;
    oci::filter(Node::Object(filter), place, losses)
}

/// Keys of a `spec` that no OCI document has.
const OWN: [&str; 3] = ["baseProfileName", "state", "disabled"];

fn lose(fields: &mut Fields, key: &str, why: &str, losses: &mut Losses) -> Result<(), Fault> {
    fields.take(key, |node, place| {
        let text = node.string(place)?;
        if text != "Enabled" {
            losses.note(place, format_args!("'{}': {why}", Plain(&text)));
        }
        Ok(())
    })?;
    Ok(())
}

/// Writes a resource.
pub fn write(exported: &Exported<'_>, losses: &mut Losses) -> Vec<u8> {
    rest::lose(exported.profile, &[], rest::CALLS_ONLY, losses);
    let mut spec = oci::write(exported.calls, exported.default, losses);
    let mut rules = Vec::new();
    if let Some(spec) = spec.as_object_mut() {
        if let Some(number) = spec.remove("defaultErrnoRet").filter(|number| *number != json!(1)) {
            losses.note(
                "defaultErrnoRet",
                format_args!("the resource has no such key: {number} becomes EPERM"),
            );
        }
        if let Some(Value::Array(all)) = spec.remove("syscalls") {
            rules = all;
        }
    }
    // Numbers of a resource are signed.
    let is_open = matches!(exported.default, DefaultAction::Allow | DefaultAction::Log);
    rules.retain_mut(|rule| {
        let fits =
            |arg: &Value| ["value", "valueTwo"].iter().all(|key| arg[key].is_null() || arg[key].is_i64());
        if rule["args"].as_array().is_none_or(|args| args.iter().all(fits)) {
            return true;
        }
        let names = rule["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let what =
            "a rule compares with a number above 2^63, which the resource cannot hold; the call is refused";
        names.for_each(|name| losses.note(name, what));
        if is_open && let Some(rule) = rule.as_object_mut() {
            rule.remove("args");
        }
        is_open
    });
    spec["architectures"] = json!(["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"]);
    spec["syscalls"] = Value::Array(rules);
    let document = Map::from_iter([
        ("apiVersion".to_string(), json!(format!("{GROUP}{VERSION}"))),
        ("kind".to_string(), json!("SeccompProfile")),
        ("metadata".to_string(), json!({ "name": resource_name(&exported.profile.name) })),
        ("spec".to_string(), spec),
    ]);
    json_document(&Value::Object(document)).into_bytes()
}

/// A name that a resource may have (RFC 1123): lower-case letters, digits, and hyphens inside.
fn resource_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().take(50).map(plain).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "sbx".to_string() } else { name.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_resources() {
        assert_eq!(resource_name("read-only"), "read-only");
        assert_eq!(resource_name("My_Profile.2"), "my-profile-2");
        assert_eq!(resource_name("-é-"), "sbx");
    }
}
