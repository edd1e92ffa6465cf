//! The rules of the schema on names and labels: what cannot exist is refused where it is written.
//!
//! A rule stands at each item, not at the list: the server bounds what one evaluation of a rule may cost, and 5,000
//! names are too many for one. `syntax` has the same rules for this program; the end-to-end cases compare the two.

use schemars::Schema;
use serde_json::{Value, json};

const NODE_NAME: &str = "a node's name has small letters, digits, dashes and dots, and begins and ends with a letter or digit, such as node-1.example";
const LABEL_KEY: &str = "a label's key is up to 63 letters, digits, dashes, underscores and dots, perhaps after a domain and a slash, such as pool or kubernetes.io/hostname";
const LABEL_VALUE: &str = "a label's value is up to 63 letters, digits, dashes, underscores and dots, and begins and ends with a letter or digit, such as workers";

/// A DNS subdomain.
macro_rules! subdomain {
    () => {
        "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    };
}
/// A name within a label's key, or a value that is not empty.
macro_rules! qualified {
    () => {
        "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
    };
}

const IS_NODE_NAME: &str = concat!("self.matches('^", subdomain!(), "$')");
const IS_LABEL_KEY: &str =
    concat!("self.matches('^(", subdomain!(), "/)?", qualified!(), "$') && self.indexOf('/') <= 253");
const ARE_LABEL_KEYS: &str = concat!(
    "self.all(key, key.matches('^(",
    subdomain!(),
    "/)?",
    qualified!(),
    "$') && key.indexOf('/') <= 253)"
);
const IS_LABEL_VALUE: &str = concat!("self.matches('^(", qualified!(), ")?$')");

/// For a list of names of nodes.
pub fn node_names(schema: &mut Schema) {
    add(schema, "/items", IS_NODE_NAME, NODE_NAME);
}

/// For a label's key.
pub fn label_key(schema: &mut Schema) {
    add(schema, "", IS_LABEL_KEY, LABEL_KEY);
}

/// For a list of a label's values.
pub fn label_values(schema: &mut Schema) {
    add(schema, "/items", IS_LABEL_VALUE, LABEL_VALUE);
}

/// For labels with their values.
pub fn labels(schema: &mut Schema) {
    let values = schema.pointer_mut("/additionalProperties");
    if let Some(Value::Object(values)) = values {
        values.insert("maxLength".to_owned(), json!(63));
    }
    add(schema, "/additionalProperties", IS_LABEL_VALUE, LABEL_VALUE);
    add(schema, "", ARE_LABEL_KEYS, LABEL_KEY);
}

fn add(schema: &mut Schema, at: &str, rule: &str, message: &str) {
    if let Some(Value::Object(schema)) = schema.pointer_mut(at) {
        schema.insert("x-kubernetes-validations".to_owned(), json!([{"rule": rule, "message": message}]));
    }
}
