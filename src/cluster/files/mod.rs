//! Objects from files instead of a cluster: YAML with several documents, JSON, and lists of either.

mod custom;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::Content;
use super::{Change, Cluster, ObjectKind, Raw};
use custom::CustomResources;

/// What is read from files.
#[derive(Debug, Default)]
pub struct Files {
    cluster: Cluster,
    custom: CustomResources,
    skipped: BTreeMap<String, usize>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read {file}: {source}; check the path and its permissions")]
    Unreadable { file: String, source: std::io::Error },
    #[error("{file} is no text in UTF-8; write it anew with kubectl get -o yaml")]
    NotText { file: String },
    #[error("{file}, document {document}: {problem}; correct it, or write it anew with kubectl get -o yaml")]
    Syntax { file: String, document: usize, problem: String },
    #[error("{file}, document {document}{object}: it has no {missing}; add it, or remove the object")]
    Incomplete { file: String, document: usize, object: String, missing: &'static str },
    #[error("{file}, document {document}{object}: {problem}; correct the field, or remove the object")]
    Invalid { file: String, document: usize, object: String, problem: String },
}

/// Where an object stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a str,
    document: usize,
    /// Position in a list.
    item: Option<usize>,
}

/// What is looked at first.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Head<'a> {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: Option<Name>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Name {
    namespace: Option<String>,
    name: Option<String>,
}

impl Files {
    /// Adds the objects of a text; `file` is its name in messages.
    pub fn add_text(&mut self, file: &str, text: &str) -> Result<(), FileError> {
        if looks_like_json(file, text) {
            return self.add_json(file, text);
        }
        for (number, document) in yaml_documents(text).enumerate() {
            let place = Place { file, document: number + 1, item: None };
            let json = document.map_err(|problem| place.syntax(problem))?;
            self.add_object(place, &json, None)?;
        }
        Ok(())
    }

    /// The cluster that the files describe, and how many objects of other kinds were passed over.
    #[must_use]
    pub fn finish(self) -> (Cluster, BTreeMap<String, usize>) {
        let Self { mut cluster, custom, skipped } = self;
        for kind in ObjectKind::ALL {
            cluster.observe(Change::Complete(kind));
        }
        custom.record_scales(&mut cluster);
        (cluster, skipped)
    }

    /// One JSON value after the other.
    fn add_json(&mut self, file: &str, text: &str) -> Result<(), FileError> {
        let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        for (number, value) in values.enumerate() {
            let place = Place { file, document: number + 1, item: None };
            let value = value.map_err(|error| place.syntax(error.to_string()))?;
            self.add_object(place, value.get(), None)?;
        }
        Ok(())
    }

    /// An object, or a list of objects; those of a typed list may leave out their kind.
    fn add_object(
        &mut self,
        place: Place<'_>,
        json: &str,
        typed: Option<(&str, &str)>,
    ) -> Result<(), FileError> {
        if !json.trim_start().starts_with('{') {
            return Err(place
                .syntax("this is no Kubernetes object, which has apiVersion, kind and metadata".to_owned()));
        }
        let head: Head<'_> = serde_json::from_str(json).map_err(|error| place.syntax(error.to_string()))?;
        let kind = head.kind.as_deref().or(typed.map(|(_, kind)| kind));
        let api_version = head.api_version.as_deref().or(typed.map(|(api_version, _)| api_version));
        let Some(kind) = kind else { return Err(place.incomplete(&head, "kind")) };
        let Some(api_version) = api_version else { return Err(place.incomplete(&head, "apiVersion")) };
        if let (Some(items), Some(of)) = (&head.items, kind.strip_suffix("List")) {
            let typed = (!of.is_empty()).then_some((api_version, of));
            for (number, item) in items.iter().enumerate() {
                self.add_object(Place { item: Some(number + 1), ..place }, item.get(), typed)?;
            }
            return Ok(());
        }
        if let Some(known) = ObjectKind::of(api_version, kind) {
            let raw = Raw::decode(known, json);
            if let Content::Bad(_, problem) = &raw.content {
                return Err(place.invalid(&head, kind, problem));
            }
            if raw.meta().name.is_empty() {
                return Err(place.incomplete(&head, "metadata.name"));
            }
            self.cluster.observe(Change::Applied(raw));
        } else if !self
            .custom
            .add(api_version, kind, json)
            .map_err(|error| place.invalid(&head, kind, &error))?
        {
            *self.skipped.entry(kind.to_owned()).or_default() += 1;
        }
        Ok(())
    }
}

/// The text of a file.
///
/// # Errors
/// It cannot be read, or is no text.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let file = || path.display().to_string();
    let bytes = fs::read(path).map_err(|source| FileError::Unreadable { file: file(), source })?;
    String::from_utf8(bytes).map_err(|_| FileError::NotText { file: file() })
}

impl Place<'_> {
    fn object(self, head: &Head<'_>) -> String {
        let item = self.item.map(|item| format!(", item {item}")).unwrap_or_default();
        let kind = head.kind.as_deref().map(|kind| format!(", {kind}")).unwrap_or_default();
        let name = match &head.metadata {
            Some(Name { namespace: Some(namespace), name: Some(name) }) => format!(" {namespace}/{name}"),
            Some(Name { namespace: None, name: Some(name) }) => format!(" {name}"),
            _ => String::new(),
        };
        format!("{item}{kind}{name}")
    }
    fn syntax(self, problem: String) -> FileError {
        FileError::Syntax { file: self.file.to_owned(), document: self.document, problem }
    }
    fn incomplete(self, head: &Head<'_>, missing: &'static str) -> FileError {
        let object = self.object(head);
        FileError::Incomplete { file: self.file.to_owned(), document: self.document, object, missing }
    }
    fn invalid(self, head: &Head<'_>, kind: &str, problem: &str) -> FileError {
        let mut object = self.object(head);
        if head.kind.is_none() {
            object = format!("{object}, {kind}");
        }
        let problem = problem.to_owned();
        FileError::Invalid { file: self.file.to_owned(), document: self.document, object, problem }
    }
}

/// JSON is also YAML, but ten times faster to read as what it is.
fn looks_like_json(file: &str, text: &str) -> bool {
    let is_yaml = Path::new(file).extension().is_some_and(|end| end == "yaml" || end == "yml");
    let first = text.trim_start().chars().next();
    matches!(first, Some('{' | '[')) && (!is_yaml || serde_json::from_str::<&RawValue>(text).is_ok())
}

/// What is wrong with a YAML text, without the parser's own names for it.
fn yaml_problem(error: &serde_saphyr::Error) -> String {
    let told = error.to_string();
    if told.contains("budget breached") {
        "it refers to itself by YAML anchors more often than an object of Kubernetes does".to_owned()
    } else {
        told
    }
}

/// The documents of a YAML text as JSON; empty ones are left out. The last may be an error.
pub fn yaml_documents(text: &str) -> impl Iterator<Item = Result<String, String>> {
    // A dump of a cluster is far larger than the limits that guard against hostile YAML allow, and it has no aliases.
    let mut budget = serde_saphyr::Budget::default();
    budget.max_reader_input_bytes = None;
    budget.max_events = usize::MAX;
    budget.max_nodes = usize::MAX;
    budget.max_documents = usize::MAX;
    budget.max_total_scalar_bytes = usize::MAX;
    let mut options = serde_saphyr::Options::default();
    options.budget = Some(budget);
    options.with_snippet = false;
    let mut reader = text.as_bytes();
    let documents: Vec<Result<String, String>> =
        serde_saphyr::read_with_options::<_, serde_json::Value>(&mut reader, options)
            .map(|document| document.map(|value| value.to_string()).map_err(|error| yaml_problem(&error)))
            .collect();
    documents.into_iter()
}
