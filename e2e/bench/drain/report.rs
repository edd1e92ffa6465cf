//! Medians, a table, and the bounds that must hold.

use std::collections::BTreeMap;

use super::contender::Contender;
use super::journal::Journal;
use super::measure::{Measured, Reaction};

/// The rounds of one contender.
pub struct Rounds {
    pub contender: Contender,
    pub measured: Vec<Measured>,
    /// One cycle on the idle cluster just before each, in seconds.
    pub cycles: Vec<f64>,
}

/// A bound, and what it is about.
struct Bound {
    what: String,
    value: f64,
    most: f64,
}

/// Prints the table and the bounds; whether all hold.
pub fn print(journal: &mut Journal, workload: &str, turns: u32, all: &[Rounds]) -> bool {
    let reference = all.iter().find(|rounds| rounds.contender == Contender::KubectlAll).map(Rounds::wall);
    journal.say("");
    journal.say(&format!(
        "{:<31} {:>7} {:>9} {:>8} {:>9} {:>8} {:>8} {:>17}  requests",
        "", "wall", "× kubectl", "× bound", "accepted", "refused", "per pod", "reaction p50/p95"
    ));
    for rounds in all {
        let times = reference.map_or_else(|| "-".to_owned(), |wall| format!("{:.2}", rounds.wall() / wall));
        let reaction = match (rounds.reaction(50, took), rounds.reaction(95, took)) {
            (Some(half), Some(most)) => format!("{half:.1}/{most:.1} ms"),
            _ => "-".to_owned(),
        };
        journal.say(&format!(
            "{:<31} {:>5.1} s {times:>9} {:>8.2} {:>9.0} {:>8.0} {:>8.2} {reaction:>17}  {}",
            rounds.contender.name(),
            rounds.wall(),
            rounds.wall() / rounds.bound(turns),
            rounds.median(|it| count(it.accepted)),
            rounds.median(|it| count(it.refused)),
            rounds.median(|it| it.per_pod),
            rounds.requests(),
        ));
    }
    journal.say("");
    let cycles: Vec<f64> = all.iter().flat_map(|rounds| rounds.cycles.iter().copied()).collect();
    journal.say(&format!(
        "bound: {turns} turns of the slowest budget × a cycle of {:.2} s, the median on the idle cluster (from {:.2} to {:.2} s)",
        median(&cycles),
        cycles.iter().copied().fold(f64::INFINITY, f64::min),
        cycles.iter().copied().fold(0.0, f64::max),
    ));
    for rounds in all {
        let all = rounds.measured.iter().flat_map(|it| &it.reactions);
        if let Some(slowest) = all.max_by(|one, other| one.took.total_cmp(&other.took)) {
            let (name, Reaction { took, budget, at, .. }) = (rounds.contender.name(), slowest);
            journal.say(&format!(
                "slowest reaction of {name}: {took:.0} ms, budget {budget}, {at:.1} s after the start"
            ));
        }
    }
    journal.say(
        "reactions from the server's answer to the write of the budget's room; p50 and p95 from its request:",
    );
    for rounds in all {
        let asked = |percent| rounds.reaction(percent, |reaction| reaction.since_asked);
        if let (Some(half), Some(most)) = (asked(50), asked(95)) {
            journal.say(&format!("  {:<31} {half:.1}/{most:.1} ms", rounds.contender.name()));
        }
    }
    journal.say("wall, of each round:");
    for rounds in all {
        let walls: Vec<String> = rounds.measured.iter().map(|it| format!("{:.1}", it.wall)).collect();
        let refused: Vec<String> = rounds.measured.iter().map(|it| it.refused.to_string()).collect();
        journal.say(&format!(
            "  {:<31} {} s; refused {}",
            rounds.contender.name(),
            walls.join(" "),
            refused.join(" ")
        ));
    }
    journal.say("");
    let mut good = true;
    for bound in bounds(workload, turns, all, reference) {
        let holds = bound.value <= bound.most;
        journal.say(&format!(
            "{}: {:.3}, at most {}: {}",
            bound.what,
            bound.value,
            bound.most,
            if holds { "holds" } else { "DOES NOT HOLD" }
        ));
        good &= holds;
    }
    good
}

fn bounds(workload: &str, turns: u32, all: &[Rounds], reference: Option<f64>) -> Vec<Bound> {
    let mut bounds = Vec::new();
    let plans = |it: &&Rounds| matches!(it.contender, Contender::PlanEach | Contender::PlanAll);
    for rounds in all.iter().filter(plans) {
        let name = rounds.contender.name();
        let mut add = |what: &str, value: f64, most: f64| {
            bounds.push(Bound { what: format!("{name}: {what}"), value, most });
        };
        if let Some(reference) = reference.filter(|_| workload == "A") {
            add("wall time by that of kubectl drain -l", rounds.wall() / reference, 0.52);
        }
        if workload == "A" && rounds.contender == Contender::PlanAll {
            add("wall time by the bound", rounds.wall() / rounds.bound(turns), 1.15);
        }
        add("evictions refused", rounds.median(|it| count(it.refused)), 0.0);
        add("evictions per moved pod", rounds.median(|it| it.per_pod), 1.02);
        add("reaction p50 in ms", rounds.reaction(50, took).unwrap_or(f64::INFINITY), 20.0);
    }
    bounds
}

impl Rounds {
    fn median(&self, of: impl Fn(&Measured) -> f64) -> f64 {
        median(&self.measured.iter().map(of).collect::<Vec<f64>>())
    }

    fn wall(&self) -> f64 {
        self.median(|it| it.wall)
    }

    fn bound(&self, turns: u32) -> f64 {
        f64::from(turns) * median(&self.cycles)
    }

    /// The median of the rounds' percentiles.
    fn reaction(&self, percent: usize, of: fn(&Reaction) -> f64) -> Option<f64> {
        let of_rounds: Vec<f64> =
            self.measured.iter().filter_map(|it| percentile(&it.reactions, percent, of)).collect();
        (of_rounds.len() == self.measured.len()).then(|| median(&of_rounds))
    }

    /// Median requests by verb: `12 get, 3 patch`.
    fn requests(&self) -> String {
        let mut verbs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for verb in self.measured.iter().flat_map(|it| it.requests.keys()) {
            let of_rounds = self.measured.iter().map(|it| count(it.requests.get(verb).copied().unwrap_or(0)));
            verbs.entry(verb).or_insert_with(|| of_rounds.collect());
        }
        let told: Vec<String> = verbs.iter().map(|(verb, of)| format!("{:.0} {verb}", median(of))).collect();
        told.join(", ")
    }
}

/// Of numbers in any order.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match (sorted.get(half), sorted.len() % 2) {
        (Some(middle), 1) => *middle,
        (Some(upper), _) => f64::midpoint(sorted.get(half - 1).copied().unwrap_or(*upper), *upper),
        (None, _) => f64::NAN,
    }
}

fn percentile(reactions: &[Reaction], percent: usize, of: fn(&Reaction) -> f64) -> Option<f64> {
    let mut sorted: Vec<f64> = reactions.iter().map(of).collect();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

fn took(reaction: &Reaction) -> f64 {
    reaction.took
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn count(number: usize) -> f64 {
    number as f64
}
