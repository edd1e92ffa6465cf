//! Label selectors on the wire (`apimachinery: LabelSelectorAsSelector`, `labels: NewRequirement`).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::cluster::interner::Interner;
use crate::cluster::{Operator, Requirement, Selector};

use super::meta::or_default;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WireSelector {
    #[serde(deserialize_with = "or_default")]
    match_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    match_expressions: Vec<Expression>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Expression {
    pub(super) key: String,
    pub(super) operator: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) values: Vec<String>,
}

impl WireSelector {
    /// The selector, or why the control plane cannot use it, in its words. A server that is asked to store such a
    /// selector refuses; only one stored long ago may have it.
    pub(super) fn read(self, interner: &mut Interner) -> Result<Selector, String> {
        let mut requirements = Vec::with_capacity(self.match_labels.len() + self.match_expressions.len());
        for (key, value) in self.match_labels {
            let values = vec![value];
            valid(&key, &values)?;
            requirements.push(requirement(&key, Operator::In, &values, interner));
        }
        for Expression { key, operator, values } in self.match_expressions {
            let operator = Operator::parse(&operator)
                .ok_or_else(|| format!("\"{operator}\" is not a valid label selector operator"))?;
            let takes_values = matches!(operator, Operator::In | Operator::NotIn);
            if takes_values && values.is_empty() {
                return Err(
                    "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
                        .into(),
                );
            }
            if !takes_values && !values.is_empty() {
                let list: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
                return Err(format!(
                    "values: Invalid value: [{}]: values set must be empty for exists and does not exist",
                    list.join(",")
                ));
            }
            valid(&key, &values)?;
            requirements.push(requirement(&key, operator, &values, interner));
        }
        Ok(Selector { requirements })
    }
}

pub(super) fn requirement(
    key: &str,
    operator: Operator,
    values: &[String],
    interner: &mut Interner,
) -> Requirement {
    Requirement {
        key: interner.text(key),
        operator,
        values: values.iter().map(|value| interner.text(value)).collect(),
    }
}

const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn valid(key: &str, values: &[String]) -> Result<(), String> {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    if name.is_empty() || !is_name(name) {
        return Err(format!(
            "key: Invalid value: \"{key}\": name part must consist of alphanumeric characters, '-', '_' or '.', and \
             must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
             used for validation is '{NAME}')"
        ));
    }
    for (number, value) in values.iter().enumerate() {
        if value.len() > 63 {
            return Err(format!(
                "values[{number}][{key}]: Invalid value: \"{value}\": must be no more than 63 bytes"
            ));
        }
        if !is_name(value) {
            return Err(format!(
                "values[{number}][{key}]: Invalid value: \"{value}\": a valid label must be an empty string or consist \
                 of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
                 (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({NAME})?')"
            ));
        }
    }
    Ok(())
}

/// What a label's value or the name in its key may consist of; empty counts.
fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let outside = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.iter().copied().all(inside) && outside(bytes.first()) && outside(bytes.last())
}
