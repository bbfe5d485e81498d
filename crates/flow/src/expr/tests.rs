//! Expressions and templates: values, bounds, errors, and the checks before a flow runs.

use std::collections::BTreeMap;

use meshwork_model::flow::{Node, Plan, Run, Text, Work};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn facts() -> Facts<'static> {
    let fetch = JobFacts {
        status: "finished",
        result: json!({"files": ["a", "b"], "count": 2, "deep": {"big": 9_007_199_254_740_993_i64}}),
        errors: vec![None],
        succeeded: 1,
        failed: 0,
    };
    let parse = JobFacts {
        status: "error",
        result: json!([1, null, 3]),
        errors: vec![None, Some("broken".to_owned()), None],
        succeeded: 2,
        failed: 1,
    };
    Facts {
        jobs: BTreeMap::from([
            ("fetch", fetch.clone()),
            ("parse", parse),
            ("export", fetch),
        ]),
        inputs: BTreeMap::from([("limit", json!(3)), ("day", json!("today"))]),
        env: BTreeMap::from([("REGION".to_owned(), "eu".to_owned())]),
        item: Some((json!({"n": 7}), 4)),
        failed: true,
    }
}

fn value(expression: &str) -> Result<Value, String> {
    evaluate(&expression.into(), &facts()).map_err(|error| error.to_string())
}

#[test]
fn values_of_expressions() {
    for (expression, wanted) in [
        ("fetch.result.files", json!(["a", "b"])),
        ("fetch.result[\"count\"] + 1", json!(3)),
        ("fetch.result.deep.big", json!(9_007_199_254_740_993_i64)),
        ("parse.failed == 1 && parse.total == 3", json!(true)),
        ("parse.result[1]", json!(null)),
        ("parse.errors[1] + parse.error", json!("brokenbroken")),
        ("parse.status", json!("error")),
        ("inputs.limit * 2", json!(6)),
        ("env.REGION + \"-1\"", json!("eu-1")),
        ("item.n + index", json!(11)),
        ("failed() && always()", json!(true)),
        ("fetch.result.files.filter(|f| f != \"a\")", json!(["b"])),
        (
            "if parse.failed > 0 { \"bad\" } else { \"good\" }",
            json!("bad"),
        ),
        ("fetch.result.files.len()", json!(2)),
        ("#{a: [1, 2.5], b: ()}", json!({"a": [1, 2.5], "b": null})),
        // A word of Rhai that is the name of a job.
        ("export.result.count + #{a: 1}.a", json!(3)),
        ("`${fetch.result.count} files`", json!("2 files")),
        ("\"fetch.result }}\"", json!("fetch.result }}")),
        // A text may be in single quotes.
        ("inputs.day == 'today' && 'a' == \"a\"", json!(true)),
        (
            "'' + 'say \"hi\"' + ' it\\'s' + \"'\"",
            json!("say \"hi\" it's'"),
        ),
        ("'fetch.result' + `${'x' + 1}`", json!("fetch.resultx1")),
        ("'a\\\\' + fetch.status", json!("a\\finished")),
    ] {
        assert_eq!(value(expression), Ok(wanted), "{expression}");
    }
}

#[test]
fn errors_name_the_expression_and_the_place() {
    for (expression, says) in [
        (
            "fetch.result.nothing",
            "the expression `fetch.result.nothing`: Property not found: nothing (character 14)",
        ),
        ("parse.result[9]", "Array index 9 out of bounds"),
        ("fetch.result +", "the expression `fetch.result +`: "),
        ("timestamp()", "Function not found: timestamp"),
        ("sleep(1)", "a script does not wait"),
        ("print(1)", "the expression `print(1)`: "),
        ("eval(\"1\")", "the expression `eval(\"1\")`: "),
        ("import \"x\" as y; 1", "the expression `import"),
        ("loop {}", "Too many operations"),
        ("let a = \"x\"; loop { a += a; }", "Length of string"),
        ("fetch.result.files.x()", "Function not found: x"),
        ("0.0 / 0.0", "which is no number in JSON"),
    ] {
        let said = value(expression).unwrap_err();
        assert!(said.contains(says), "{expression}: {said}");
    }
    let said = value("export.result.count +\n  export.result.nope").unwrap_err();
    assert!(said.contains("(line 2, character 17)"), "{said}");
    let said = value("export.result.count + export.result.nope").unwrap_err();
    assert!(said.contains("(character 37)"), "{said}");
    let said = value("'\"it\\'s\"' + export.result.nope").unwrap_err();
    assert!(said.contains("(character 27)"), "{said}");
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    assert!(value(&deep).unwrap_err().contains("maximum complexity"));
}

#[test]
fn conditions_are_true_or_false() {
    let ask = |text: &str| condition(&text.into(), &facts()).map_err(|error| error.to_string());
    assert_eq!(ask("parse.failed == 0"), Ok(false));
    assert!(
        ask("parse.failed")
            .unwrap_err()
            .contains("its value is the number 1, but `if` needs")
    );
    assert!(ask("()").unwrap_err().contains("its value is nothing"));
}

#[test]
fn items_of_a_foreach() {
    let list = |text: &str| items(&text.into(), &facts()).map_err(|error| error.to_string());
    assert_eq!(list("fetch.result.files"), Ok(vec![json!("a"), json!("b")]));
    assert_eq!(list("[]"), Ok(vec![]));
    assert_eq!(list("#{}"), Ok(vec![]));
    assert_eq!(list("0"), Ok(vec![]));
    assert_eq!(list("3"), Ok(vec![json!(0), json!(1), json!(2)]));
    assert_eq!(list("[[1, 2], []]"), Ok(vec![json!([1, 2]), json!([])]));
    let entries = vec![
        json!({"key": "a", "value": 1}),
        json!({"key": "b", "value": 2}),
    ];
    assert_eq!(list("#{b: 2, a: 1}"), Ok(entries));
    assert_eq!(list("10000").map(|items| items.len()), Ok(10_000));
    for (text, says) in [
        ("10001", "it has 10001 items: at most 10000 are allowed"),
        ("-1", "its value is -1, which is no number of items"),
        ("1.5", "its value is 1.5, which is no number of items"),
        (
            "\"ab\"",
            "its value is a text, but `foreach` needs a list, a map or a whole number",
        ),
        ("true", "its value is true"),
        ("()", "its value is nothing"),
    ] {
        let said = list(text).unwrap_err();
        assert!(said.contains(says), "{text}: {said}");
    }
    let many = json!(vec![0; 10_001]);
    let mut facts = facts();
    facts.inputs.insert("many", many);
    let said = items(&"inputs.many".into(), &facts)
        .unwrap_err()
        .to_string();
    assert!(said.contains("it has 10001 items"), "{said}");
}

#[test]
fn outputs_are_json_or_text() {
    for (output, value) in [
        ("[]", json!([])),
        ("{}", json!({})),
        ("", json!("")),
        ("hello", json!("hello")),
        ("{\"a\": }", json!("{\"a\": }")),
        ("1 2", json!("1 2")),
        ("\"text\"", json!("text")),
        ("null", json!(null)),
        ("9007199254740993", json!(9_007_199_254_740_993_i64)),
        ("9223372036854775808", json!("9223372036854775808")),
        (
            "{\"id\": 18446744073709551616, \"n\": [-9223372036854775808]}",
            json!({"id": "18446744073709551616", "n": [i64::MIN]}),
        ),
        ("\"18446744073709551616\"", json!("18446744073709551616")),
        ("1234567890123456789.5", json!("1234567890123456789.5")),
        ("1e300", json!(1e300)),
        (
            "{\"a\\\"9999999999999999999\": 1}",
            json!({"a\"9999999999999999999": 1}),
        ),
        (
            "99999999999999999999 bottles",
            json!("99999999999999999999 bottles"),
        ),
        ("007", json!("007")),
    ] {
        assert_eq!(output_value(output), value, "{output}");
    }
}

#[test]
fn values_have_a_depth() {
    let nested =
        |depth: usize| output_value(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    let ask = |depth: usize| {
        let mut facts = facts();
        facts.inputs.insert("x", nested(depth));
        evaluate(&"inputs.x.len()".into(), &facts).map_err(|error| error.to_string())
    };
    assert_eq!(ask(60), Ok(json!(1)));
    assert!(
        ask(100)
            .unwrap_err()
            .contains("nested more than 64 levels deep")
    );
    assert!(value("let a = []; for i in 0..70 { a = [a]; } a").is_ok());
    assert!(
        value("let a = []; for i in 0..5000 { a = [a]; } a")
            .unwrap_err()
            .contains("nests deeper")
    );
}

#[test]
fn templates_are_texts_with_expressions() {
    let fill = |text: &str| fill_text(&text.into(), &facts()).map_err(|error| error.to_string());
    for (template, text) in [
        ("plain", "plain"),
        ("", ""),
        ("Publish {{fetch.result.count}} files?", "Publish 2 files?"),
        ("{{ fetch.result.files }}", "[\"a\",\"b\"]"),
        ("{{ () }}", ""),
        ("{{ \"{{\" }}x}}", "{{x}}"),
        ("{{ #{a: #{b: 1}} }}", "{\"a\":{\"b\":1}}"),
        ("{{ \"}}\" }}", "}}"),
        ("a{{1}}b{{true}}c", "a1btruec"),
        ("{ not } one", "{ not } one"),
    ] {
        assert_eq!(fill(template), Ok(text.to_owned()), "{template}");
    }
    assert!(fill("{{ 1").unwrap_err().contains("`{{` has no `}}`"));
    assert!(fill("{{ }}").unwrap_err().contains("no expression between"));
    let all = json!({"list": ["{{fetch.result.files}}", "n = {{index}}"], "number": 1});
    let filled = super::fill(&all, None, &facts()).unwrap();
    assert_eq!(filled, json!({"list": [["a", "b"], "n = 4"], "number": 1}));
}

#[test]
fn an_if_may_ask_for_failure() {
    for (text, asks) in [
        ("failed()", true),
        ("always() && true", true),
        ("!failed ()", true),
        ("parse.failed == 0", false),
        ("\"failed()\" == \"\"", false),
        ("parse.failed()", false),
        ("true // failed()", false),
    ] {
        assert_eq!(asks_for_failure(&text.into()), asks, "{text}");
    }
}

fn plan(jobs: &[(&str, &[&str])]) -> Plan {
    let mut plan = Plan::new("test");
    for (name, needs) in jobs {
        let mut node = Node::new(name.parse().unwrap(), Work::Run(Run::default()));
        node.needs = needs.iter().map(|need| need.parse().unwrap()).collect();
        plan.jobs.push(node);
    }
    plan
}

fn faults(plan: &Plan) -> Vec<String> {
    check(plan).into_iter().map(|fault| fault.message).collect()
}

#[test]
fn an_expression_names_ancestors_only() {
    let with = |text: &str| {
        let mut plan = plan(&[
            ("a", &[]),
            ("b", &["a"]),
            ("c", &["b"]),
            ("d", &[]),
            ("sync", &["c"]),
        ]);
        plan.jobs[2].condition = Some(text.into());
        faults(&plan)
    };
    for good in [
        "a.failed == 0 && b.failed == 0",
        "true",
        "inputs.x == env.y",
        "let x = a.failed; x > 0",
    ] {
        assert_eq!(with(good), Vec::<String>::new(), "{good}");
    }
    for (bad, says) in [
        (
            "d.failed == 0",
            "job `c`: `if`: `d` may not have ended before: add it to `needs`",
        ),
        ("sync.failed == 0", "`sync` "),
        ("c.failed == 0", "`c` may not have ended before"),
        ("nobody.failed == 0", "there is no `nobody` here"),
        ("item == 1", "there is no `item` here"),
        ("a.failed ==", "job `c`: `if`: "),
        (" ", "there is no expression"),
    ] {
        let said = with(bad);
        assert!(said.len() == 1 && said[0].contains(says), "{bad}: {said:?}");
    }
}

#[test]
fn functions_and_properties_exist() {
    let with = |text: &str| {
        let mut plan = plan(&[("a", &[]), ("b", &["a"])]);
        plan.jobs[1].condition = Some(text.into());
        faults(&plan)
    };
    for good in [
        "failed() || always()",
        "a.result.x.len() > 0",
        "len(a.result) + abs(-1) + max(1, 2) > 0",
        "a.result.filter(|x| x.outputs).len() > 0",
        "a.keys().len() > 0",
        "let a = inputs; a.outputs",
        "if (a.failed > 0) { true } else { type_of(a.result) == \"map\" }",
        "a.errors[0] == () && a.error == () && a.status == `${a.total}`",
        "sub_string(a.result, 1, 2) == to_string(parse_int(\"1\"))",
    ] {
        assert_eq!(with(good), Vec::<String>::new(), "{good}");
    }
    for (bad, says) in [
        (
            "success()",
            "there is no function `success`; `failed()` is true",
        ),
        (
            "contains_all(a.result, 1)",
            "there is no function `contains_all`",
        ),
        ("timestamp() > 1", "there is no function `timestamp`"),
        (
            "a.outputs.x == 1",
            "a job has no `outputs`: `a` has status, result,",
        ),
        ("true && a?.output", "a job has no `output`"),
        (
            "inputs.default",
            "`default` is a word of Rhai: write `[\"default\"]` instead of",
        ),
        ("inputs.if", "`if` is a word of Rhai"),
    ] {
        let said = with(bad);
        assert!(said.len() == 1 && said[0].contains(says), "{bad}: {said:?}");
    }
}

#[test]
fn hints_name_what_is_probably_not_meant() {
    let mut plan = plan(&[("a", &[]), ("b", &["a"])]);
    plan.jobs[1]
        .env
        .insert("X".to_owned(), "${{ a.result }}".into());
    plan.jobs[1].env.insert("Y".to_owned(), "$ {{ 1 }}".into());
    for name in ["default", "day-of", "day"] {
        plan.inputs.insert(name.to_owned(), json!(1));
    }
    assert_eq!(faults(&plan), Vec::<String>::new());
    let said: Vec<String> = hints(&plan).into_iter().map(|hint| hint.message).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("write `inputs[\"day-of\"]`"), "{said:?}");
    assert!(said[1].contains("write `inputs[\"default\"]`"), "{said:?}");
    assert!(
        said[2].contains("job `b`: `env.X`: `${{ }}` is no syntax here"),
        "{said:?}"
    );
}

#[test]
fn items_outputs_and_compensations_have_names_of_their_own() {
    let mut plan = plan(&[("a", &[]), ("b", &["a"]), ("undo", &[])]);
    plan.jobs[1].foreach = Some("a.result".into());
    plan.jobs[1]
        .env
        .insert("X".to_owned(), "{{item}} {{index}} {{a.result}}".into());
    plan.jobs[2].compensates = Some("b".parse().unwrap());
    plan.jobs[2]
        .env
        .insert("X".to_owned(), "{{b.result}} {{a.result}}".into());
    plan.outputs.insert("x".to_owned(), "{{b.result}}".into());
    plan.env.insert("Y".to_owned(), "{{inputs.z}}".into());
    assert_eq!(faults(&plan), Vec::<String>::new());
    assert!(output_names(&plan).contains(&"b".parse().unwrap()));
    plan.outputs
        .insert("x".to_owned(), "{{undo.result}}".into());
    plan.env.insert("Y".to_owned(), "{{a.result}}".into());
    plan.jobs[1].foreach = Some("item".into());
    plan.jobs[1].env.insert("X".to_owned(), "{{item".into());
    let said = faults(&plan);
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[0].contains("`env.Y`: `a` is a job"), "{said:?}");
    assert!(
        said[1].contains("`undo` compensates another job"),
        "{said:?}"
    );
    assert!(
        said[3].contains("job `b`: `env.X`: `{{` has no `}}`"),
        "{said:?}"
    );
}

#[test]
fn nested_flows_get_their_inputs() {
    let mut outer = Plan::new("outer");
    let mut inner = plan(&[("a", &[])]);
    inner.inputs = BTreeMap::from([
        ("day".to_owned(), Value::Null),
        ("limit".to_owned(), json!(3)),
    ]);
    outer.flows.insert("k".to_owned(), inner);
    outer
        .jobs
        .push(Node::new("n".parse().unwrap(), Work::Flow("k".to_owned())));
    assert!(faults(&outer)[0].contains("the flow `test` needs the input `day`"));
    let input = |text: &str| meshwork_model::flow::Input {
        value: json!(text),
        at: None,
    };
    outer.jobs[0]
        .inputs
        .insert("day".to_owned(), input("today"));
    assert_eq!(faults(&outer), Vec::<String>::new());
    outer.jobs[0]
        .inputs
        .insert("dya".to_owned(), input("today"));
    assert!(faults(&outer)[0].contains("has no input `dya`; it has: day, limit"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is between braces, a template ends, and texts without braces stay as they are.
    #[test]
    fn any_template_ends(text in "[a{}`\"'#$/* .\\\\:]{0,40}") {
        let filled = fill_text(&Text::from(text.as_str()), &facts());
        if !text.contains("{{") {
            prop_assert_eq!(filled.unwrap(), text);
        }
    }

    /// JSON comes back from an expression as it went in.
    #[test]
    fn json_comes_back(number in any::<i64>(), text in ".{0,20}", truth in any::<bool>()) {
        let value = json!({"n": number, "t": text, "l": [truth, null, {"x": []}]});
        let mut facts = facts();
        facts.inputs.insert("x", output_value(&value.to_string()));
        prop_assert_eq!(evaluate(&"inputs.x".into(), &facts).unwrap(), value);
    }
}
