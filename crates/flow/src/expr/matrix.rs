//! The function `matrix`: all combinations of several lists.

use meshwork_model::flow::limits::MAX_ITEMS;
use rhai::{Array, Dynamic, EvalAltResult, Map};
use serde_json::Value;

use super::value::json;

type Combined = Result<Array, Box<EvalAltResult>>;

/// Returns a map for each combination of the values of `axes`, a list of pairs of a name and a list: the last axis varies
/// first. Leaves out those that have all values of a map in `exclude`.
pub(super) fn matrix(axes: Array, exclude: Array) -> Combined {
    let axes = axes.into_iter().map(axis).collect::<Result<Vec<_>, _>>()?;
    let exclude = exclude
        .iter()
        .map(excluded)
        .collect::<Result<Vec<_>, _>>()?;
    let lengths = axes.iter().map(|(_, values)| values.len());
    let total = lengths.fold(1_usize, usize::saturating_mul);
    if total > MAX_ITEMS {
        let message = format!("a matrix of {total} combinations: at most {MAX_ITEMS} are allowed");
        return Err(message.into());
    }
    let known: Vec<&String> = axes.iter().map(|(name, _)| name).collect();
    if let Some(name) = exclude
        .iter()
        .flat_map(|of| of.keys())
        .find(|it| !known.contains(it))
    {
        return Err(format!("`exclude` names `{name}`, which is no list of the matrix").into());
    }
    let mut combinations = vec![Vec::new()];
    for (_, values) in &axes {
        let longer = combinations
            .into_iter()
            .flat_map(|chosen: Vec<&(Dynamic, Value)>| {
                values.iter().map(move |value| {
                    let mut chosen = chosen.clone();
                    chosen.push(value);
                    chosen
                })
            });
        combinations = longer.collect();
    }
    let is_left_out = |chosen: &[&(Dynamic, Value)]| {
        exclude.iter().any(|of| {
            let both = axes.iter().zip(chosen);
            both.filter_map(|((name, _), (_, value))| Some(of.get(name)? == value))
                .all(|same| same)
        })
    };
    let left = combinations
        .into_iter()
        .filter(|chosen| !is_left_out(chosen));
    let maps = left.map(|chosen| {
        let both = axes.iter().zip(chosen);
        let map: Map = both
            .map(|((name, _), (value, _))| (name.as_str().into(), value.clone()))
            .collect();
        Dynamic::from_map(map)
    });
    Ok(maps.collect())
}

type Axis = (String, Vec<(Dynamic, Value)>);

fn axis(pair: Dynamic) -> Result<Axis, Box<EvalAltResult>> {
    let wrong = || Box::<EvalAltResult>::from("a matrix takes pairs of a name and a list");
    let pair = pair.into_array().map_err(|_| wrong())?;
    let [name, values] = <[Dynamic; 2]>::try_from(pair).map_err(|_| wrong())?;
    let name = name.into_string().map_err(|_| wrong())?;
    let kind = values.type_name();
    let values = values
        .into_array()
        .map_err(|_| format!("`matrix.{name}` is no list, but {kind}"))?;
    let values = values.into_iter().map(|value| {
        let as_json = json(&value).map_err(|error| error.to_string())?;
        Ok((value, as_json))
    });
    let values = values.collect::<Result<Vec<_>, String>>()?;
    Ok((name, values))
}

fn excluded(map: &Dynamic) -> Result<serde_json::Map<String, Value>, Box<EvalAltResult>> {
    match json(map).map_err(|error| error.to_string())? {
        Value::Object(map) => Ok(map),
        _ => Err("`exclude` takes maps".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine;

    fn combined(call: &str) -> Result<String, String> {
        let engine = engine::new(false);
        let value = engine.eval::<rhai::Array>(call);
        let value = value.map_err(|error| engine::message(&error))?;
        Ok(super::json(&value.into()).unwrap().to_string())
    }

    #[test]
    fn all_combinations_in_order_but_the_excluded_ones() {
        let call = r#"matrix([["os", ["a", "b"]], ["n", [1, 2]]], [#{os: "a", n: 2}])"#;
        let expected = r#"[{"n":1,"os":"a"},{"n":1,"os":"b"},{"n":2,"os":"b"}]"#;
        assert_eq!(combined(call).unwrap(), expected);
        let call = r#"matrix([["os", ["a", "b"]], ["n", [1, 2]]], [#{os: "a"}])"#;
        assert_eq!(combined(call).unwrap().matches("os").count(), 2);
        assert_eq!(combined(r#"matrix([["os", []]], [])"#).unwrap(), "[]");
    }

    #[test]
    fn a_wrong_matrix_says_why() {
        for (call, why) in [
            (r#"matrix([["os", 1]], [])"#, "`matrix.os` is no list"),
            (r#"matrix([["os", [1]]], [#{x: 1}])"#, "`exclude` names `x`"),
            (
                "let l = []; l.pad(101, 0); matrix([[\"a\", l], [\"b\", l]], [])",
                "a matrix of 10201 combinations",
            ),
        ] {
            let said = combined(call).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
