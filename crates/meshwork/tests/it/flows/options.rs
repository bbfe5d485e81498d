//! Options of flows: partial results of a `foreach`, `matrix`, `on_failure` and `finally`.

use super::*;

#[tokio::test]
async fn a_script_gets_the_results_and_errors_of_a_foreach() {
    let view = run("
flow: partial
jobs:
  part: {script: 'if INPUT == \"1\" { throw \"part 1 broken\" } parse_int(INPUT) * 2', type: osis, foreach: 3, continue: true}
  one: {script: 'throw \"broken too\"', type: osis, continue: true}
  all:
    script: '#{list: INPUTS.part, errors: INPUTS.errors(\"part\"), one: INPUTS.errors(\"one\"), has: \"one\" in INPUTS}'
    type: osis
    needs: [part, one]
")
    .await;
    assert_eq!(view.error, None);
    let all = &view.job("all").unwrap().result;
    assert_eq!(all["list"], json!([0, null, 4]));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    assert!(text(&all["errors"]["1"]).contains("part 1 broken"), "{all}");
    assert_eq!(all["errors"].as_object().unwrap().len(), 1);
    assert!(text(&all["one"]["0"]).contains("broken too"), "{all}");
    assert_eq!(all["has"], json!(false));
}

#[tokio::test]
async fn a_matrix_runs_each_combination() {
    let view = run("
flow: grid
jobs:
  sizes: {script: '[1, 2]', type: osis}
  build:
    script: 'let it = parse_json(INPUT); `${it.os}${it.n}`'
    type: osis
    needs: sizes
    matrix: {os: [a, b], n: sizes.result, exclude: [{os: a, n: 2}]}
")
    .await;
    assert_eq!(view.error, None);
    assert_eq!(view.job("build").unwrap().result, json!(["a1", "b1", "b2"]));
}

const CLOSING: &str = "
flow: closing
inputs: {bad: false}
jobs:
  a: {script: 'if parse_json(INPUT).bad { throw \"x\" } 1', type: osis, with: {bad: '{{inputs.bad}}'}}
  b: {script: '2', type: osis, needs: a}
  c: {script: '3', type: osis, needs: a}
on_failure:
  tell: {script: '4', type: osis}
  more: {script: '5', type: osis, needs: tell, if: tell.result == 4}
finally:
  clean: {script: '6', type: osis}
";

#[tokio::test]
async fn jobs_close_a_flow_after_success_and_failure() {
    let view = run(CLOSING).await;
    let closed = "a=finished b=finished c=finished tell=skipped more=skipped clean=finished";
    assert_eq!(ends(&view), closed);
    assert_eq!(json!(view.outputs), json!({"b": 2, "c": 3}));
    let view = run(&CLOSING.replace("bad: false", "bad: true")).await;
    let closed = "a=error b=skipped c=skipped tell=finished more=finished clean=finished";
    assert_eq!(ends(&view), closed);
    assert!(view.error.unwrap().starts_with("job `a`: "));
}
