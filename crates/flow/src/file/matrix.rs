//! `matrix`: a `foreach` over all combinations of several lists.

use meshwork_model::flow::Text;

use super::fields::{Fields, literal, quoted};
use super::tree::Data;

/// The option of a matrix that is no list of values.
const EXCLUDE: &str = "exclude";

/// Reads the option as the expression of a `foreach`: a call of the function `matrix`.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<Text> {
    let tree = fields.take("matrix")?;
    let at = tree.at;
    if fields.has("foreach") {
        fields.add(at, "`matrix` is a `foreach` itself: give one of them");
        fields.take("foreach");
    }
    let shown = tree.shown();
    let Data::Map(entries) = tree.data else {
        let message = format!("`matrix` has to be a map of names and lists, not {shown}");
        fields.add(at, message);
        return None;
    };
    let (mut axes, mut exclude) = (String::new(), "[]".to_owned());
    for (key, value) in entries {
        let is_exclude = key.text == EXCLUDE;
        let is_maps = |items: &[super::tree::Tree]| {
            items.iter().all(|item| matches!(item.data, Data::Map(_)))
        };
        let mut text = String::new();
        match &value.data {
            Data::List(items) if !is_exclude || is_maps(items) => literal(&value, &mut text),
            Data::Text(expression) if !is_exclude => text = format!("({expression})"),
            _ => {
                let wanted = if is_exclude {
                    "a list of maps"
                } else {
                    "a list or an expression"
                };
                let message = format!(
                    "`matrix.{}` has to be {wanted}, not {}",
                    key.text,
                    value.shown()
                );
                fields.add(value.at, message);
                continue;
            }
        }
        if is_exclude {
            exclude = text;
            continue;
        }
        axes.push('[');
        quoted(&key.text, &mut axes);
        axes.push_str(&format!(",{text}],"));
    }
    Some(Text {
        text: format!("matrix([{axes}],{exclude})"),
        at: Some(at),
    })
}
