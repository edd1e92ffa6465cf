//! `kubectl drainplan windows`: when a plan may work, from its file alone.

use anyhow::Context as _;
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use kube::ResourceExt as _;
use serde::Serialize;

use super::args::{Global, Windows};
use super::output::Outcome;
use super::source;
use super::table::{self, Table, instant};
use super::visible::visible_line;
use crate::api::{DrainPlan, Window};
use crate::cluster::yaml_documents;
use crate::plan::{Calendar, Open};

/// The answer; a contract with scripts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    open: bool,
    closes_at: Option<Timestamp>,
    upcoming: Vec<Upcoming>,
    /// What the server would refuse.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    #[serde(skip)]
    never: bool,
}

#[derive(Debug, Serialize)]
struct Upcoming {
    opens: Timestamp,
    closes: Option<Timestamp>,
}

pub(super) fn run(global: &Global, windows: &Windows) -> anyhow::Result<Outcome> {
    let (file, text) = source::read(&windows.file)?;
    let plan = plan(&file, &text)?;
    let at = windows.at.unwrap_or_else(Timestamp::now);
    let answer = answer(&plan, at, windows.next)?;
    Outcome::of(global.output, &answer, false, || table(&plan, &answer, at, table::width()))
}

/// The one DrainPlan of a file; other objects beside it are passed over.
pub(super) fn plan(file: &str, text: &str) -> anyhow::Result<DrainPlan> {
    let mut plans = Vec::new();
    for (number, document) in yaml_documents(text).enumerate() {
        let place = format!("{file}, document {}", number + 1);
        let json = document.map_err(|problem| anyhow::anyhow!("{place}: {problem}"))?;
        let value: serde_json::Value = serde_json::from_str(&json).with_context(|| place.clone())?;
        let text = |field: &str| value.get(field).and_then(serde_json::Value::as_str).unwrap_or_default();
        if text("kind") == "DrainPlan" && text("apiVersion").starts_with("drainplan.dev/") {
            let plan: DrainPlan =
                serde_json::from_value(value).with_context(|| format!("{place} is no DrainPlan"))?;
            plans.push(plan);
        }
    }
    let count = plans.len();
    let mut plans = plans.into_iter();
    match (plans.next(), plans.next()) {
        (Some(plan), None) => Ok(plan),
        (None, _) => anyhow::bail!("{file} holds no DrainPlan of drainplan.dev: name the file that does"),
        _ => {
            anyhow::bail!("{file} holds {count} DrainPlans: put the one that is meant into a file of its own")
        }
    }
}

pub(super) fn answer(plan: &DrainPlan, at: Timestamp, next: usize) -> anyhow::Result<Answer> {
    let calendar =
        Calendar::of(&plan.spec).map_err(|problem| anyhow::anyhow!("{}: {problem}", plan.name_any()))?;
    let (open, first) = calendar.around(at);
    let times = std::iter::successors(first, |open| calendar.following(open)).take(next);
    let upcoming =
        times.filter_map(|Open { opens, closes }| Some(Upcoming { opens: opens?, closes })).collect();
    Ok(Answer {
        open: open.is_some(),
        closes_at: open.and_then(|open| open.closes),
        upcoming,
        problems: problems(plan),
        never: first.is_none(),
    })
}

/// Windows in which no node would ever be started: the server refuses them.
fn problems(plan: &DrainPlan) -> Vec<String> {
    let needed = plan.spec.node_timeout();
    let short =
        |window: &&Window| window.duration.value() < needed.value() && !plan.spec.finishes_after_window();
    let told = plan.spec.windows.iter().filter(short).map(|window| {
        format!(
            "The server refuses this plan: window {} is open for {}, and a node may take {needed} (timeouts.node); \
             write a longer window, a shorter timeouts.node, or onWindowEnd: Finish.",
            window.schedule, window.duration
        )
    });
    told.collect()
}

pub(super) fn table(plan: &DrainPlan, answer: &Answer, at: Timestamp, width: usize) -> String {
    let name = visible_line(&plan.name_any()).into_owned();
    let now = match (answer.open, answer.closes_at) {
        (true, Some(closes)) => format!("{name} is open at {}, until {}.", instant(at), instant(closes)),
        (true, None) => format!("{name} is open at {}, and no end is in sight.", instant(at)),
        (false, _) if answer.never => {
            format!("{name} is shut at {}, and it never opens.", instant(at))
        }
        (false, _) => format!("{name} is shut at {}.", instant(at)),
    };
    let mut table = Table::new(&["OPENS", "CLOSES", "FOR", "THERE"], width);
    let zones: Vec<&str> =
        plan.spec.windows.iter().map(|window| window.time_zone.as_deref().unwrap_or("UTC")).collect();
    for Upcoming { opens, closes } in &answer.upcoming {
        table.row(vec![
            instant(*opens),
            closes.map_or_else(|| "-".to_owned(), instant),
            closes.map_or_else(|| "-".to_owned(), |closes| format!("{:#}", closes.duration_since(*opens))),
            there(*opens, *closes, &zones),
        ]);
    }
    for problem in &answer.problems {
        table.sentence(problem);
    }
    format!("{now}\n{}", table.render())
}

/// What the clocks show in the plan's zone, if it has one for all windows.
fn there(opens: Timestamp, closes: Option<Timestamp>, zones: &[&str]) -> String {
    let Some(first) = zones.first().filter(|first| zones.iter().all(|zone| zone == *first)) else {
        return "-".to_owned();
    };
    let Ok(zone) = TimeZoneDatabase::bundled().get(first) else { return "-".to_owned() };
    let face = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%a %d %b %H:%M %Z").to_string();
    match closes {
        Some(closes) => format!("{} to {}", face(opens), face(closes)),
        None => face(opens),
    }
}
