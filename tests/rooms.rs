//! The rooms keep their walls: what each may import stands in the table of `docs/architecture.md`, and the inner ones
//! have no client, no clock, no waiting and no log.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says so by failing")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms without a client or a clock: the same code runs on a cluster, on files and in a simulation.
const INNER: [&str; 6] = ["api", "cluster", "budget", "explain", "plan", "simulate"];
/// The longest source file, in lines.
const LONGEST: usize = 600;

/// A room as the table in the architecture page has it.
#[derive(Debug)]
struct Room {
    may_import: BTreeSet<String>,
    planned: bool,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn table() -> BTreeMap<String, Room> {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let quoted = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches('/').to_owned()).collect()
    };
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = quoted(cells[1]).remove(0);
        let planned = cells[1].contains("planned");
        (name, Room { may_import: quoted(cells[3]).into_iter().collect(), planned })
    })
    .collect()
}

fn sources(under: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(under) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The files of a room: `src/room/…` and `src/room.rs`.
fn files(room: &str) -> Vec<PathBuf> {
    let mut files = sources(&root().join("src").join(room));
    files.extend(Some(root().join("src").join(format!("{room}.rs"))).filter(|file| file.exists()));
    files
}

#[test]
fn every_room_of_the_page_exists_and_every_room_is_on_the_page() {
    let table = table();
    let there: BTreeSet<String> = fs::read_dir(root().join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "lib")
        .collect();
    let built: BTreeSet<String> =
        table.iter().filter(|(_, room)| !room.planned).map(|(name, _)| name.clone()).collect();
    assert_eq!(
        there, built,
        "rooms in src/ (left), rooms of docs/architecture.md that are not planned (right)"
    );
    for (name, room) in &table {
        for import in &room.may_import {
            assert!(table.contains_key(import), "{name} may import {import}, which is no room of the table");
        }
    }
}

#[test]
fn rooms_import_what_the_page_allows() {
    let table = table();
    let mut wrong = Vec::new();
    for (name, room) in table.iter().filter(|(_, room)| !room.planned) {
        let files = files(name);
        assert!(!files.is_empty(), "{name} has no source");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let rooms: BTreeSet<&str> = table.keys().map(String::as_str).collect();
            let found = foreign_rooms(&text, &rooms);
            let foreign = found.into_iter().filter(|found| found != name && !room.may_import.contains(found));
            wrong.extend(foreign.map(|import| format!("{} imports {import}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "see the table in docs/architecture.md:\n{}", wrong.join("\n"));
}

#[test]
fn inner_rooms_have_no_client_no_clock_no_waiting_and_no_log() {
    let mut wrong = Vec::new();
    for file in INNER.iter().flat_map(|room| files(room)) {
        let found = impurities(&fs::read_to_string(&file).unwrap());
        wrong.extend(found.into_iter().map(|what| format!("{}: {what}", file.display())));
    }
    assert!(wrong.is_empty(), "time and observations are arguments there:\n{}", wrong.join("\n"));
}

#[test]
fn no_source_file_is_longer_than_it_can_be_read() {
    let files =
        ["src", "tests", "examples", "e2e"].iter().flat_map(|directory| sources(&root().join(directory)));
    let lengths = files.map(|file| (fs::read_to_string(&file).unwrap().lines().count(), file));
    let long: Vec<_> = lengths.filter(|(lines, _)| *lines > LONGEST).collect();
    assert!(long.is_empty(), "over {LONGEST} lines, split by the question answered: {long:?}");
}

#[test]
fn a_breach_is_found_however_it_is_written() {
    let rooms = BTreeSet::from(["plan", "budget", "engine", "cluster"]);
    let foreign = |text| foreign_rooms(text, &rooms).into_iter().collect::<Vec<_>>();
    assert_eq!(foreign("use crate::plan::decide;"), ["plan"]);
    assert_eq!(foreign("use crate::{cluster::Pod, budget::{self, room}};"), ["budget", "cluster"]);
    assert_eq!(foreign("pub(crate) use super::super::engine as shell;"), ["engine"]);
    assert_eq!(foreign("fn f() { let x = drainplan::engine::run(); }"), ["engine"]);
    assert_eq!(
        foreign("// crate::plan\n/* crate::plan */ const S: &str = \"crate::plan \\\" crate::plan\";"),
        [""; 0]
    );
    assert_eq!(
        foreign(
            "const S: &str = r#\"crate::plan \" \"#; fn f<'a>(x: &'a str, y: char) -> bool { y == '\"' }"
        ),
        [""; 0]
    );

    for (text, what) in [
        ("use kube::{Api, Resource};", "kube::Api"),
        ("use kube::{client::Body, Resource};", "kube::client"),
        ("use kube::*;", "kube::*"),
        ("use tokio::sync::mpsc;", "tokio"),
        ("fn f() { let now = jiff::Timestamp::now(); }", "Timestamp::now"),
        ("use std::time::{Duration, Instant};", "Instant"),
        ("fn f(now: std::time::SystemTime) {}", "SystemTime"),
        ("async fn f() {}", "async"),
        ("fn f() { tracing::info!(\"decided\"); }", "tracing"),
        ("fn f() { println!(\"decided\"); }", "println"),
        ("fn f() { std::env::var(\"X\"); }", "env"),
    ] {
        assert_eq!(impurities(text), BTreeSet::from([what.to_owned()]), "{text}");
    }
    for text in [
        "use kube::{CustomResource, ResourceExt as _};",
        "use jiff::Timestamp;",
        "use std::time::Duration;",
        "/// See tokio.",
    ] {
        assert_eq!(impurities(text), BTreeSet::new(), "{text}");
    }
}

/// The rooms that a source file names, as `crate::room`, `drainplan::room` or `super::…::room`.
fn foreign_rooms(text: &str, rooms: &BTreeSet<&str>) -> BTreeSet<String> {
    let first = |path: &Vec<String>| {
        let mut segments = path.iter().map(String::as_str);
        let start = segments.next().filter(|start| ["crate", "super", "drainplan"].contains(start))?;
        let next = segments.find(|segment| *segment != "super")?;
        (start != "super" || path.len() > 1).then(|| next.to_owned())
    };
    paths(text).iter().filter_map(first).filter(|name| rooms.contains(name.as_str())).collect()
}

/// What an inner room must not have.
fn impurities(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in paths(text) {
        let segments: Vec<&str> = path.iter().map(String::as_str).collect();
        match segments.as_slice() {
            [
                "kube",
                inside @ ("Client" | "client" | "Api" | "api" | "Config" | "config" | "runtime" | "*"),
                ..,
            ] => {
                found.insert(format!("kube::{inside}"));
            }
            ["async" | "await" | "println" | "eprintln" | "dbg" | "tokio" | "tracing" | "futures", ..] => {
                found.insert(segments[0].to_owned());
            }
            _ => {}
        }
        let clocks = segments.iter().filter(|segment| ["SystemTime", "Instant"].contains(segment));
        found.extend(clocks.map(|clock| (*clock).to_owned()));
        let now =
            segments.windows(2).find(|pair| pair[1] == "now" && ["Timestamp", "Zoned"].contains(&pair[0]));
        found.extend(now.map(|pair| pair.join("::")));
        found.extend(Some("env".to_owned()).filter(|_| segments.starts_with(&["std", "env"])));
    }
    found
}

/// Every path in a source file, `use` trees spelled out: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_name(&tokens[at]) {
            at = path(&tokens, at, &[], &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads one path that starts at a name, `*` or `{`; returns where it ends.
fn path(tokens: &[String], mut at: usize, before: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut segments = before.to_vec();
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    let start = is_name(&tokens[at]) || tokens[at] == "*" || tokens[at] == "{";
                    at = if start { path(tokens, at, &segments, found) } else { at + 1 };
                }
                return at + 1;
            }
            Some(token) => segments.push(token.to_owned()),
            None => return at,
        }
        at += 1;
        let goes_on = tokens.get(at).is_some_and(|token| token == "::")
            && tokens.get(at + 1).is_some_and(|token| is_name(token) || token == "*" || token == "{");
        if !goes_on {
            found.push(segments);
            return at;
        }
        at += 1;
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::` and single characters, without comments, strings, characters and lifetimes.
fn tokens(text: &str) -> Vec<String> {
    let text: Vec<char> = text.chars().collect();
    let starts = |at: usize, what: &str| what.chars().enumerate().all(|(i, c)| text.get(at + i) == Some(&c));
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if starts(at, "//") {
            at = (at..text.len()).find(|at| text[*at] == '\n').unwrap_or(text.len());
        } else if starts(at, "/*") {
            at = (at + 2..text.len()).find(|at| starts(*at, "*/")).unwrap_or(text.len()) + 2;
        } else if text[at] == '"' {
            at = end_of_quote(&text, at, '"');
        } else if text[at] == '\'' {
            // A character has its closing quote right behind it, a lifetime has none.
            let is_char = text.get(at + 1) == Some(&'\\') || text.get(at + 2) == Some(&'\'');
            at = if is_char { end_of_quote(&text, at, '\'') } else { at + 1 };
        } else if starts(at, "r#\"") || starts(at, "r\"") || starts(at, "r##\"") {
            let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
            let end = format!("\"{}", "#".repeat(hashes));
            let body = at + hashes + 2;
            at = (body..text.len()).find(|at| starts(*at, &end)).unwrap_or(text.len()) + end.len();
        } else if text[at].is_alphabetic() || text[at] == '_' {
            let name: String = text[at..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
            at += name.chars().count();
            tokens.push(name);
        } else if starts(at, "::") {
            tokens.push("::".to_owned());
            at += 2;
        } else {
            if !text[at].is_whitespace() {
                tokens.push(text[at].to_string());
            }
            at += 1;
        }
    }
    tokens
}

fn end_of_quote(text: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < text.len() && text[at] != quote {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}
