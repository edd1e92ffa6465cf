//! README.md shows something in each of its blocks, and lists the fields that a plan has.

use std::collections::BTreeSet;
use std::error::Error;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

const PAGE: &str = include_str!("../README.md");

#[test]
fn no_block_is_empty() {
    let parts: Vec<&str> = PAGE.split("```").collect();
    assert_eq!(parts.len() % 2, 1, "a block is not closed");
    let mut blocks = 0;
    for block in parts.iter().skip(1).step_by(2) {
        let text = block.split_once('\n').map_or("", |(_, text)| text);
        assert!(!text.trim().is_empty(), "block {blocks} is empty");
        blocks += 1;
    }
    assert!(blocks > 5, "only {blocks} blocks");
}

/// A field of which the table names no part is a row of its own.
fn fields(schema: &JSONSchemaProps, path: &str, rows: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    for (name, property) in schema.properties.iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let parts = rows.iter().any(|row| row.starts_with(&format!("{path}.")));
        if parts {
            fields(property, &path, rows, found);
        } else {
            found.insert(path);
        }
    }
}

#[test]
fn the_table_of_fields_is_that_of_the_resource() -> Result<(), Box<dyn Error>> {
    let table = PAGE.split("| field | means | default |").nth(1).ok_or("no table of fields")?;
    let cells = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names = cells.filter_map(|line| line.split('|').nth(1)).flat_map(|cell| cell.split(','));
    let rows: BTreeSet<String> = names.map(|name| name.trim().trim_matches('`').to_owned()).collect();

    let crd = drainplan::api::crd();
    let version = crd.spec.versions.first().ok_or("no version")?;
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    let spec = schema.and_then(|schema| schema.properties.as_ref()?.get("spec")).ok_or("no spec")?;
    let mut found = BTreeSet::new();
    fields(spec, "", &rows, &mut found);
    assert_eq!(rows, found);
    Ok(())
}
