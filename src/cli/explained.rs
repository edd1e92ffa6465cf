//! The answer of `explain` as people read it: the worst first, what is alike together, and not more than one reads.

use std::cmp::Reverse;

use unicode_width::UnicodeWidthStr as _;

use super::explain::{Answer, PodAnswer};
use super::table::{self, Table};

/// Pods of a group that have a row, and groups that are shown.
const NAMED: usize = 5;
const GROUPS: usize = 20;
/// What is told of one pod is at most so long, and of that its remedy, its message and each name.
const LINES: usize = 25;
const REMEDY: usize = 5;
const MESSAGE: usize = 8;
const NAME: usize = 3;
/// Where all of it is.
const WHOLE: &str = "-o yaml has all of it";

/// What pods have in common that wait for the same.
type Alike<'a> = (&'a str, &'a str, &'a [String]);

fn alike(pod: &PodAnswer) -> Alike<'_> {
    (pod.reason.unwrap_or_default(), &pod.namespace, &pod.eviction.budgets)
}

/// Waiting pods by what they wait for, and of the others a count.
pub(super) fn many(answer: &Answer, width: usize) -> String {
    let verified = answer.pods.iter().any(|pod| pod.verified.is_some());
    let mut waiting: Vec<&PodAnswer> = answer.pods.iter().filter(|pod| pod.reason.is_some()).collect();
    waiting.sort_by_key(|pod| (Reverse(pod.outlook), alike(pod), Reverse(pod.message.len()), &pod.name));
    let same = |a: &&PodAnswer, b: &&PodAnswer| (a.outlook, alike(a)) == (b.outlook, alike(b));
    let mut groups: Vec<&[&PodAnswer]> = waiting.chunk_by(same).collect();
    groups.sort_by_key(|group| Reverse((group.first().and_then(|pod| pod.outlook), group.len())));
    let mut table = Table::new(&header(verified), width);
    for group in groups.iter().take(GROUPS) {
        show(&mut table, group, verified);
    }
    let rest = groups.get(GROUPS..).unwrap_or_default();
    if !rest.is_empty() {
        table.sentence(&format!("and {} (-o yaml has them): {}", pods(rest.concat().len()), counted(rest)));
    }
    let rows = table.render();
    let gap = if rows.is_empty() { "" } else { "\n" };
    format!("{rows}{gap}{}\n", summary(answer, waiting.len()))
}

fn show(table: &mut Table, group: &[&PodAnswer], verified: bool) {
    for pod in group.iter().take(NAMED) {
        table.row(row(pod, verified));
    }
    let Some(first) = group.first() else { return };
    let more = group.len().saturating_sub(NAMED);
    if more > 0 {
        table.sentence(&format!("and {more} more for the same reason (-o yaml has them)"));
    }
    let differ = group.iter().any(|pod| pod.message != first.message);
    let whose = if differ { format!("{}: ", first.name) } else { String::new() };
    table.shortened("  ", &format!("{whose}{}", first.message), MESSAGE, WHOLE);
    if !first.remedy.is_empty() {
        table.shortened("→ ", &first.remedy, REMEDY, WHOLE);
    }
}

fn pods(count: usize) -> String {
    if count == 1 { "1 more pod".to_owned() } else { format!("{count} more pods") }
}

/// `12 BudgetExhausted, 3 Terminating`.
fn counted(groups: &[&[&PodAnswer]]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for group in groups {
        let reason = group.first().and_then(|pod| pod.reason).unwrap_or_default();
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += group.len(),
            None => counts.push((reason, group.len())),
        }
    }
    counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ")
}

fn summary(answer: &Answer, waiting: usize) -> String {
    let ignored = answer.pods.iter().filter(|pod| pod.action == "Ignore").count();
    let free = answer.pods.iter().filter(|pod| pod.reason.is_none() && pod.action != "Ignore").count();
    let verb =
        |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let room = if answer.at_once < free {
        format!(", but their budgets allow no more than {} of them at once", answer.at_once)
    } else {
        String::new()
    };
    format!(
        "{}, {free} would be evicted now{room}, {} left alone.",
        verb(waiting, "pod waits", "pods wait"),
        verb(ignored, "is", "are")
    )
}

/// All that is to be said about one pod, on one screen: as a row where that fits, else one thing below the other.
pub(super) fn one(pod: &PodAnswer, width: usize) -> String {
    let verified = pod.verified.is_some();
    let mut table = Table::new(&header(verified), width);
    table.row(row(pod, verified));
    table.sentence(&pod.message);
    if !pod.remedy.is_empty() {
        table.remedy(&pod.remedy);
    }
    let text = table.render();
    let width = width.max(table::NARROWEST);
    let fits = text.lines().count() <= LINES && text.lines().all(|line| line.width() <= width);
    if fits { text } else { card(pod, width) }
}

fn card(pod: &PodAnswer, width: usize) -> String {
    let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let verified = pod.verified.as_ref().map(|verified| format!(", and says {} to a dry run", verified.code));
    let outlook = pod.outlook.map(|outlook| format!(", {outlook:?}"));
    let facts = [
        ("NAMESPACE", pod.namespace.clone()),
        ("POD", pod.name.clone()),
        ("NODE", or_dash(pod.node.as_deref())),
        (
            "ACTION",
            format!(
                "{}; the server answers {}{}",
                pod.action,
                pod.eviction.code,
                verified.unwrap_or_default()
            ),
        ),
        ("BUDGETS", budgets(&pod.eviction.budgets, width.saturating_sub(12) * (NAME - 1))),
        ("REASON", format!("{}{}", or_dash(pod.reason), outlook.unwrap_or_default())),
    ];
    let mut lines: Vec<String> = Vec::new();
    for (what, value) in facts {
        let mut marks = std::iter::once(what).chain(std::iter::repeat(""));
        let value = table::first(table::lines_of(&value, width.saturating_sub(12)), NAME, WHOLE);
        lines.extend(value.into_iter().map(|line| format!("{:<12}{line}", marks.next().unwrap_or_default())));
    }
    let mut card = lines.join("\n") + "\n";
    for (text, mark, most) in [(&pod.message, "  ", MESSAGE), (&pod.remedy, "→ ", REMEDY)] {
        let lines = table::first(table::lines_of(text, width.saturating_sub(4)), most, WHOLE);
        card += &table::marked(mark, &lines);
    }
    card
}

/// So many of the names as there is room for, and how many more there are.
fn budgets(names: &[String], room: usize) -> String {
    let mut text = String::new();
    for (number, name) in names.iter().enumerate() {
        let left = names.len() - number;
        if number > 0 && text.width() + name.width() + 16 > room {
            return format!("{text} and {left} more");
        }
        text.extend([if number > 0 { ", " } else { "" }, name]);
    }
    if text.is_empty() { "-".to_owned() } else { text }
}

fn header(verified: bool) -> Vec<&'static str> {
    let head = ["NAMESPACE", "POD", "NODE", "ACTION", "CODE"].into_iter();
    head.chain(verified.then_some("VERIFIED")).chain(["BUDGETS", "REASON", "OUTLOOK"]).collect()
}

fn row(pod: &PodAnswer, verified: bool) -> Vec<String> {
    let or_dash = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned();
    let mut cells = vec![
        pod.namespace.clone(),
        pod.name.clone(),
        or_dash(pod.node.as_deref()),
        pod.action.to_owned(),
        pod.eviction.code.to_string(),
    ];
    if verified {
        cells
            .push(pod.verified.as_ref().map_or_else(|| "-".to_owned(), |verified| verified.code.to_string()));
    }
    cells.push(table::names(&pod.eviction.budgets));
    cells.push(or_dash(pod.reason));
    cells.push(pod.outlook.map_or_else(|| "-".to_owned(), |outlook| format!("{outlook:?}")));
    cells
}
