//! The examples of docs/flows.md: each is a flow, or is refused as its first line says.

const DOCS: &str = include_str!("../../../../docs/flows.md");

#[test]
fn the_examples_of_the_docs_hold() {
    let folder = tempfile::tempdir().unwrap();
    for script in [
        "fetch.py",
        "parse.rhai",
        "upload.py",
        "rollback.py",
        "announce.py",
    ] {
        std::fs::write(folder.path().join(script), "1\n").unwrap();
    }
    let file = folder.path().join("f.yaml");
    let blocks: Vec<&str> = DOCS.split("```yaml\n").skip(1).collect();
    assert!(blocks.len() > 10, "{} blocks", blocks.len());
    for block in blocks {
        let text = block.split("```").next().unwrap();
        std::fs::write(&file, text).unwrap();
        let read = super::load(&file);
        match text
            .strip_prefix("# refused: ")
            .and_then(|rest| rest.lines().next())
        {
            Some(says) => {
                let said = read.unwrap_err().to_string();
                assert!(said.contains(says), "{text}: {said}");
            }
            None => assert!(read.is_ok(), "{text}: {read:?}"),
        }
    }
}
