//! The drawings and their bounds.

use meshwork_model::flow::{Approve, Dag, JobState, Node, Plan, Run, Work};

use super::*;

fn run() -> Work {
    let script_type = "python".to_owned();
    Work::Run(Run {
        script_type,
        ..Run::default()
    })
}

fn dag(
    jobs: &[(&str, &[&str])],
    change: impl Fn(&mut Plan),
    status: impl Fn(&str) -> JobState,
) -> Dag<String> {
    let mut plan = Plan::new("nightly");
    for (name, needs) in jobs {
        let mut node = Node::new(name.parse().unwrap(), run());
        node.needs = needs.iter().map(|need| need.parse().unwrap()).collect();
        plan.jobs.push(node);
    }
    change(&mut plan);
    let name = |n: usize| plan.jobs[n].name.to_string();
    Dag::new(&plan, name, |n| status(plan.jobs[n].name.as_str())).unwrap()
}

fn nightly(status: impl Fn(&str) -> JobState) -> Dag<String> {
    let jobs: [(&str, &[&str]); 6] = [
        ("fetch", &[]),
        ("parse", &["fetch"]),
        ("publish", &["parse"]),
        ("upload", &["publish", "fetch"]),
        ("rollback", &[]),
        ("clean", &["fetch"]),
    ];
    let change = |plan: &mut Plan| {
        plan.jobs[1].foreach = Some("3".into());
        plan.jobs[2].work = Work::Approve(Approve::default());
        plan.jobs[4].compensates = Some("upload".parse().unwrap());
    };
    dag(&jobs, change, status)
}

fn ran(name: &str) -> JobState {
    let (status, error) = match name {
        "fetch" | "parse" => ("finished", None),
        "publish" => ("error", Some("rejected by <4> & \"co\"".to_owned())),
        "clean" => ("started", None),
        _ => ("dispatched", None),
    };
    JobState {
        status: Some(status.to_owned()),
        error,
        ..JobState::default()
    }
}

#[test]
fn a_tree() {
    let planned = text(&nightly(|_| JobState::default()), "nightly", WIDTH);
    let wanted = "\
nightly: 6 jobs in 4 levels
└─ fetch (python)
   ├─ parse (group)
   │  └─ publish (approve)
   │     └─ upload (python) ← fetch
   │        └─ undo: rollback (python)
   └─ clean (python)
";
    assert_eq!(planned, wanted);
    let run = text(&nightly(ran), "nightly", 40);
    let wanted = "\
nightly: 6 jobs in 4 levels
└─ ✓ fetch (python)
   ├─ ✓ parse (group)
   │  └─ ✗ publish (approve): rejected …
   │     └─ · upload (python) ← fetch
   │        └─ · undo: rollback (python)
   └─ ▶ clean (python)
";
    assert_eq!(run, wanted);
}

#[test]
fn large_trees_are_folded() {
    let names: Vec<String> = (0..500).map(|n| format!("job_{n}")).collect();
    let wide: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
    let drawn = text(&dag(&wide, |_| (), |_| JobState::default()), "wide", WIDTH);
    assert_eq!(drawn.lines().count(), 11);
    assert!(drawn.ends_with("└─ … 491 more jobs\n"), "{drawn}");
    let before: Vec<[&str; 1]> = names.iter().map(|name| [name.as_str()]).collect();
    let long: Vec<(&str, &[&str])> = (0..500)
        .map(|n| {
            (
                names[n].as_str(),
                if n == 0 { &[][..] } else { &before[n - 1][..] },
            )
        })
        .collect();
    let drawn = text(&dag(&long, |_| (), |_| JobState::default()), "long", WIDTH);
    assert!(drawn.ends_with("└─ … 484 more jobs\n"), "{drawn}");
    // A binary tree of 500 jobs.
    let parents: Vec<[&str; 1]> = (0..500usize)
        .map(|n| [names[n.saturating_sub(1) / 2].as_str()])
        .collect();
    let tree: Vec<(&str, &[&str])> = (0..500)
        .map(|n| {
            (
                names[n].as_str(),
                if n == 0 { &[][..] } else { &parents[n][..] },
            )
        })
        .collect();
    let drawn = text(&dag(&tree, |_| (), |_| JobState::default()), "tree", WIDTH);
    assert!(drawn.lines().count() < 80, "{drawn}");
    assert!(drawn.lines().all(|line| line.chars().count() <= WIDTH));
}

#[test]
fn mermaid_of_a_run() {
    let wanted = "\
flowchart TD
  n0[\"fetch<br/>python\"]
  n1[[\"parse<br/>group\"]]
  n2{\"publish<br/>approve\"}
  n3[\"upload<br/>python\"]
  n4[\"rollback<br/>python\"]
  n5[\"clean<br/>python\"]
  n0 --> n1
  n1 --> n2
  n0 --> n3
  n2 --> n3
  n0 --> n5
  n3 -. undo .-> n4
  classDef finished fill:#e6f4ea,stroke:#137333
  class n0,n1 finished
  classDef error fill:#fce8e6,stroke:#b3261e
  class n2 error
  classDef started fill:#e8f0fe,stroke:#1a56c4
  class n5 started
";
    assert_eq!(mermaid(&nightly(ran)), wanted);
}

/// Checks that all elements of an XML text are closed in order, and that no `&` or `<` stands alone.
fn well_formed(xml: &str) {
    let mut open = Vec::new();
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        assert!(!text.contains('>'), "{text}");
        for after in text.split('&').skip(1) {
            assert!(
                ["lt;", "gt;", "amp;", "quot;"]
                    .iter()
                    .any(|name| after.starts_with(name)),
                "{text}"
            );
        }
        let end = rest[start..].find('>').unwrap() + start;
        let tag = &rest[start + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty());
}

#[test]
fn svg_of_a_run() {
    let drawn = svg(&nightly(ran), "a <b> & \"c\"");
    well_formed(&drawn);
    assert!(drawn.contains("<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"));
    assert!(drawn.contains("<title>publish: rejected by &lt;4&gt; &amp; &quot;co&quot;</title>"));
    assert_eq!(drawn.matches("<g>").count(), 6);
    assert_eq!(drawn.matches("<path").count(), 6);
    let small = dag(
        &[("a", &[]), ("b", &["a"])],
        |_| (),
        |_| JobState::default(),
    );
    let wanted = "\
<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"400\" height=\"110\" viewBox=\"0 0 400 110\" font-family=\"sans-serif\" font-size=\"12\">
<title>two</title>
<rect class=\"sheet\" width=\"400\" height=\"110\" fill=\"#ffffff\"/>
<text x=\"20\" y=\"24\" font-size=\"14\" font-weight=\"bold\">two</text>
<path class=\"edge\" d=\"M170 70 C200 70 200 70 230 70\" fill=\"none\" stroke=\"#9aa0a6\"/>
<g><title>a</title><rect class=\"box\" x=\"20\" y=\"50\" width=\"150\" height=\"40\" rx=\"6\" fill=\"#ffffff\" stroke=\"#5f6368\"/><text x=\"95\" y=\"67\" text-anchor=\"middle\">a</text><text x=\"95\" y=\"81\" class=\"small\" text-anchor=\"middle\" font-size=\"10\" fill=\"#5f6368\">python</text></g>
<g><title>b</title><rect class=\"box\" x=\"230\" y=\"50\" width=\"150\" height=\"40\" rx=\"6\" fill=\"#ffffff\" stroke=\"#5f6368\"/><text x=\"305\" y=\"67\" text-anchor=\"middle\">b</text><text x=\"305\" y=\"81\" class=\"small\" text-anchor=\"middle\" font-size=\"10\" fill=\"#5f6368\">python</text></g>
</svg>
";
    assert_eq!(svg(&small, "two"), wanted);
}

#[test]
fn svg_of_a_wide_flow_is_folded() {
    let names: Vec<String> = (0..500).map(|n| format!("job_{n}")).collect();
    let wide: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
    let drawn = svg(&dag(&wide, |_| (), |_| JobState::default()), "wide");
    well_formed(&drawn);
    assert_eq!(drawn.matches("<g>").count(), 100);
    assert!(drawn.contains("… 401 more jobs"));
}

fn bars() -> Vec<Bar> {
    let bar = |name: &str, status: &str, start_ms, end_ms| Bar {
        name: name.to_owned(),
        status: status.to_owned(),
        start_ms,
        end_ms,
    };
    vec![
        bar("fetch", "finished", 1000, Some(3500)),
        bar("parse", "error", 3500, Some(3500)),
        bar("a_name_that_is_much_too_long", "started", 6000, None),
    ]
}

#[test]
fn a_waterfall() {
    let drawn = waterfall_text(&bars(), 11_000, 60);
    let wanted = "\
✓ fetch                │██████                     │     2.5s
✗ parse                │      █                    │      0ms
▶ a_name_that_is_much… │             ██████████████│     5.0s
";
    assert_eq!(drawn, wanted);
    assert!(drawn.lines().all(|line| line.chars().count() <= 62));
    let drawn = waterfall_svg(&bars(), 11_000, "n <1>");
    well_formed(&drawn);
    assert_eq!(drawn.matches("<g>").count(), 3);
    assert_eq!(waterfall_text(&[], 5, WIDTH), "");
    well_formed(&waterfall_svg(&[], 5, "none"));
}
