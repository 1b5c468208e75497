//! TOML, as cargo and others read it.

use crate::plan::settings_copy::{Keep, Unreadable};
use ::toml::de::{DeTable, DeValue};

/// Deeper than any setting is.
const DEEPEST: usize = 8;

/// What is kept, by the keys that lead to it with `.` between them.
pub fn filtered(keep: Keep<'_>, text: &str) -> Result<String, Unreadable> {
    let table = DeTable::parse(text).map_err(|_| Unreadable)?;
    let mut copy = Copy { keep, text: String::new(), header: String::new() };
    copy.table(table.get_ref(), &mut Vec::new());
    Ok(copy.text)
}

/// The text of the copy, and the table that it is in.
struct Copy<'a> {
    keep: Keep<'a>,
    text: String,
    header: String,
}

impl Copy<'_> {
    /// Values first: what stands behind the header of a table belongs to that table.
    fn table<'t>(&mut self, table: &'t DeTable<'_>, way: &mut Vec<&'t str>) {
        for wants_tables in [false, true] {
            for (key, value) in table.iter() {
                let (key, value): (&str, _) = (key.get_ref(), value.get_ref());
                // With a point in a key, two settings would have one name.
                let is_plain = !key.contains('.') && !key.chars().any(char::is_control);
                if value.is_table() != wants_tables || !is_plain || way.len() == DEEPEST {
                    continue;
                }
                way.push(key);
                match value {
                    DeValue::Table(inner) => self.table(inner, way),
                    value => self.value(value, way),
                }
                way.pop();
            }
        }
    }

    fn value(&mut self, value: &DeValue<'_>, way: &[&str]) {
        let name = way.join(".");
        let takes = |text: &str| self.keep.takes(name.as_bytes(), text.as_bytes());
        let Some((written, (last, tables))) = written(value, &takes, true).zip(way.split_last()) else {
            return;
        };
        let header = tables.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(".");
        if self.header != header {
            self.text.push_str(&format!("[{header}]\n"));
            self.header = header;
        }
        self.text.push_str(&format!("{} = {written}\n", quoted(last)));
    }
}

/// How a value is written, if it is taken: a list only as a whole, and only one of plain values.
fn written(value: &DeValue<'_>, takes: &impl Fn(&str) -> bool, may_be_list: bool) -> Option<String> {
    let plain = |text: String| takes(&text).then_some(text);
    match value {
        DeValue::String(text) => (takes(text) && !text.chars().any(char::is_control)).then(|| quoted(text)),
        DeValue::Integer(number) => plain(number.to_string()),
        DeValue::Float(number) => plain(number.to_string()),
        DeValue::Boolean(yes) => plain(yes.to_string()),
        DeValue::Datetime(time) => plain(time.to_string()),
        DeValue::Array(items) if may_be_list => {
            let items: Option<Vec<String>> =
                items.iter().map(|item| written(item.get_ref(), takes, false)).collect();
            // An empty one by its name.
            items.filter(|_| takes("")).map(|items| format!("[{}]", items.join(", ")))
        }
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// As a basic string; there are no control characters in it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
