//! Objects from files instead of a cluster: YAML with several documents, JSON, and lists of either.

mod alike;
mod custom;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::Content;
use super::{Change, Cluster, ObjectKind, Raw, Text};
use alike::alike;
use custom::CustomResources;

/// How deep lists may stand in lists: no tool writes more than two.
const DEEPEST: usize = 16;
/// So many objects that are left out are named.
const NAMED: usize = 20;

/// What is read from files.
#[derive(Debug, Default)]
pub struct Files {
    cluster: Cluster,
    custom: CustomResources,
    notes: Notes,
}

/// What is not in the cluster that files describe.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// How many objects of kinds that nothing asks about, by kind.
    pub passed_over: BTreeMap<String, usize>,
    /// Objects that cannot be read or look like ones that are, the first of them: where, which, and why.
    pub left_out: Vec<String>,
    /// How many more of them.
    pub more_left_out: usize,
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
}

/// Where an object stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a str,
    document: usize,
    /// Position in a list.
    item: Option<usize>,
    /// How many lists it stands in.
    depth: usize,
}

/// What is looked at first.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Head<'a> {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: Option<Name>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Name {
    namespace: Option<String>,
    name: Option<String>,
}

impl Files {
    /// Adds the objects of a text; `file` is its name in messages. What cannot be read of them is left out, and noted.
    ///
    /// # Errors
    /// The text is neither YAML nor JSON, or something else than objects.
    pub fn add_text(&mut self, file: &str, text: &str) -> Result<(), FileError> {
        if looks_like_json(file, text) {
            return self.add_json(file, text);
        }
        for (number, document) in yaml_documents(text).enumerate() {
            let place = Place { file, document: number + 1, item: None, depth: 0 };
            let json = document.map_err(|problem| place.syntax(problem))?;
            self.add_document(place, &json)?;
        }
        Ok(())
    }

    /// The cluster that the files describe, and what is not in it.
    #[must_use]
    pub fn finish(self) -> (Cluster, Notes) {
        let Self { mut cluster, custom, notes } = self;
        for kind in ObjectKind::ALL {
            cluster.observe(Change::Complete(kind));
        }
        custom.record_scales(&mut cluster);
        cluster.miss_owners();
        if lacks_nodes(&cluster) {
            cluster.miss_nodes();
        }
        (cluster, notes)
    }

    /// One JSON value after the other.
    fn add_json(&mut self, file: &str, text: &str) -> Result<(), FileError> {
        let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        for (number, value) in values.enumerate() {
            let place = Place { file, document: number + 1, item: None, depth: 0 };
            let value = value.map_err(|error| place.syntax(error.to_string()))?;
            self.add_document(place, value.get())?;
        }
        Ok(())
    }

    fn add_document(&mut self, place: Place<'_>, json: &str) -> Result<(), FileError> {
        if is_object(json) {
            self.add_object(place, json, None);
            Ok(())
        } else {
            Err(place.syntax(NO_OBJECT.to_owned()))
        }
    }

    /// An object, or a list of objects; those of a typed list may leave out their kind.
    fn add_object(&mut self, place: Place<'_>, json: &str, typed: Option<(&str, &str)>) {
        if !is_object(json) {
            return self.leave_out(&place.object("", None), NO_OBJECT);
        }
        let head: Head<'_> = match serde_json::from_str(json) {
            Ok(head) => head,
            Err(error) => return self.leave_out(&place.object("", None), &error.to_string()),
        };
        let kind = head.kind.as_deref().or(typed.map(|(_, kind)| kind));
        let api_version = head.api_version.as_deref().or(typed.map(|(api_version, _)| api_version));
        let object = || place.object(kind.unwrap_or_default(), head.metadata.as_ref());
        let Some(kind) = kind else { return self.leave_out(&object(), "it has no kind; add it") };
        let Some(api_version) = api_version else {
            return self.leave_out(&object(), "it has no apiVersion; add it");
        };
        if let (Some(items), Some(of)) = (head.items, kind.strip_suffix("List")) {
            let typed = (!of.is_empty()).then_some((api_version, of));
            if let Err(problem) = self.add_items(place, items, typed) {
                self.leave_out(&object(), &problem);
            }
        } else if let Some(known) = ObjectKind::of(api_version, kind) {
            let raw = Raw::decode(known, json);
            if let Content::Bad(_, problem) = &raw.content {
                self.leave_out(&object(), &format!("{problem}; correct the field"));
            } else if raw.meta().name.is_empty() {
                return self.leave_out(&object(), "it has no metadata.name; add it");
            }
            self.cluster.observe(Change::Applied(raw));
        } else {
            match self.custom.add(api_version, kind, json) {
                Ok(true) => {}
                Ok(false) => match alike(api_version, kind, head.items.is_some()) {
                    Some(problem) => self.leave_out(&object(), &problem),
                    None => *self.notes.passed_over.entry(kind.to_owned()).or_default() += 1,
                },
                Err(problem) => {
                    self.leave_out(&object(), &format!("{problem}; correct the field"));
                }
            }
        }
    }

    fn add_items(
        &mut self,
        place: Place<'_>,
        items: &RawValue,
        typed: Option<(&str, &str)>,
    ) -> Result<(), String> {
        if place.depth >= DEEPEST {
            return Err(format!("it is a list in a list, and so on, more than {DEEPEST} deep"));
        }
        let items: Vec<&RawValue> = serde_json::from_str(items.get()).map_err(|error| error.to_string())?;
        for (number, item) in items.iter().enumerate() {
            let place = Place { item: Some(number + 1), depth: place.depth + 1, ..place };
            self.add_object(place, item.get(), typed);
        }
        Ok(())
    }

    fn leave_out(&mut self, object: &str, problem: &str) {
        if self.notes.left_out.len() < NAMED {
            self.notes.left_out.push(format!("{object} is left out: {problem}"));
        } else {
            self.notes.more_left_out += 1;
        }
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
    /// Where, and which object, as far as it says so.
    fn object(self, kind: &str, metadata: Option<&Name>) -> String {
        let item = self.item.map(|item| format!(", item {item}")).unwrap_or_default();
        let kind = if kind.is_empty() { String::new() } else { format!(", {kind}") };
        let name = match metadata {
            Some(Name { namespace: Some(namespace), name: Some(name) }) => format!(" {namespace}/{name}"),
            Some(Name { namespace: None, name: Some(name) }) => format!(" {name}"),
            _ => String::new(),
        };
        format!("{}, document {}{item}{kind}{name}", self.file, self.document)
    }
    fn syntax(self, problem: String) -> FileError {
        FileError::Syntax { file: self.file.to_owned(), document: self.document, problem }
    }
}

const NO_OBJECT: &str = "this is no Kubernetes object, which has apiVersion, kind and metadata";

fn is_object(json: &str) -> bool {
    json.trim_start().starts_with('{')
}

/// Whether pods are on nodes that no file describes. Those that are going may outlive theirs.
fn lacks_nodes(cluster: &Cluster) -> bool {
    let unknown = |name: &Text| cluster.node(name).is_none();
    let mut staying = cluster.pods().filter(|pod| !pod.terminating() && !pod.finished());
    cluster.nodes().next().is_none() || staying.any(|pod| pod.node.as_ref().is_some_and(unknown))
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
