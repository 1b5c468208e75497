//! Puts a hook among the settings of an agent, and takes it out: nothing else of the text changes, comments included.

use crate::hooks::{Agent, protocol};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

/// Why settings are not changed: they are not what the agent's settings look like.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// They are no JSON.
    #[error("{0}")]
    Syntax(String),
    /// A value is of another kind.
    #[error("'{0}' in it is no {1}")]
    Kind(String, &'static str),
}

/// The text with the hook in it, as the last of its kind.
pub fn add(agent: Agent, text: &str, command: &str) -> Result<String, EditError> {
    let (event, entry) = protocol::entry(agent, command);
    let root = parse(text)?;
    let top = object_of(&root)?;
    if agent == Agent::Cursor && top.get("version").is_none() {
        top.append("version", CstInputValue::Number("1".to_string()));
    }
    let hooks = top.object_value_or_create("hooks").ok_or(EditError::Kind("hooks".into(), "object"))?;
    let list = hooks.array_value_or_create(event);
    let list = list.ok_or_else(|| EditError::Kind(format!("hooks.{event}"), "list"))?;
    list.append(input(entry));
    Ok(root.to_string())
}

/// The text without hooks of ours, and whether there were any. What is empty without them goes too.
pub fn take_out(agent: Agent, text: &str) -> Result<Option<String>, EditError> {
    let root = parse(text)?;
    let top = object_of(&root)?;
    let (event, _) = protocol::entry(agent, "");
    let Some(hooks) = top.object_value("hooks") else { return Ok(None) };
    let Some(list) = hooks.array_value(event) else { return Ok(None) };
    let mut found = false;
    for element in list.elements() {
        found |= take_out_of(agent, element);
    }
    if !found {
        return Ok(None);
    }
    if list.elements().is_empty() {
        remove_property(&hooks, event);
    }
    if hooks.properties().is_empty() {
        remove_property(&top, "hooks");
    }
    Ok(Some(root.to_string()))
}

/// A hook of ours in the settings.
pub struct Ours {
    /// What the agent runs.
    pub command: String,
    /// Whether the entry is what `install` writes. Another one may be asked about other tools, or not be run at all.
    pub is_as_written: bool,
}

/// Our hooks in a text, and how many others are asked before the same event.
pub fn hooks_in(agent: Agent, text: &str) -> Result<(Vec<Ours>, usize), EditError> {
    let (event, _) = protocol::entry(agent, "");
    let settings = value_of(text)?;
    let (mut ours, mut others) = (Vec::new(), 0);
    for entry in settings["hooks"][event].as_array().into_iter().flatten() {
        let inner = entry["hooks"].as_array().into_iter().flatten();
        for command in [entry].into_iter().chain(inner).filter_map(|hook| hook["command"].as_str()) {
            if protocol::is_ours(command, agent) {
                let is_as_written = *entry == protocol::entry(agent, command).1;
                ours.push(Ours { command: command.to_string(), is_as_written });
            } else {
                others += 1;
            }
        }
    }
    Ok((ours, others))
}

/// What settings say, behind the mark that some editors begin a text with.
pub fn value_of(text: &str) -> Result<Value, EditError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    jsonc_parser::parse_to_serde_value(text, &ParseOptions::default())
        .map_err(|error| EditError::Syntax(error.to_string()))
}

/// Takes ours out of one entry of the list: the entry itself, or hooks in it.
fn take_out_of(agent: Agent, element: CstNode) -> bool {
    let Some(group) = element.as_object() else { return false };
    let is_ours =
        |object: &CstObject| command_of(object.clone()).is_some_and(|text| protocol::is_ours(&text, agent));
    if is_ours(&group) {
        element.remove();
        return true;
    }
    let Some(hooks) = group.array_value("hooks") else { return false };
    let ours: Vec<CstNode> = hooks
        .elements()
        .into_iter()
        .filter(|hook| hook.as_object().is_some_and(|hook| is_ours(&hook)))
        .collect();
    if ours.is_empty() {
        return false;
    }
    if ours.len() == hooks.elements().len() {
        element.remove();
    } else {
        ours.into_iter().for_each(CstNode::remove);
    }
    true
}

fn command_of(object: CstObject) -> Option<String> {
    object.get("command")?.value()?.as_string_lit()?.decoded_value().ok()
}

/// An empty file says as much as one with an empty object.
fn parse(text: &str) -> Result<CstRootNode, EditError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| EditError::Syntax(error.to_string()))
}

fn object_of(root: &CstRootNode) -> Result<CstObject, EditError> {
    root.object_value().ok_or_else(|| EditError::Kind("the whole".into(), "object"))
}

fn remove_property(object: &CstObject, name: &str) {
    if let Some(property) = object.get(name) {
        property.remove();
    }
}

fn input(value: Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(yes) => CstInputValue::Bool(yes),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text),
        Value::Array(items) => CstInputValue::Array(items.into_iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.into_iter().map(|(key, value)| (key, input(value))).collect())
        }
    }
}
