//! Deliberate errors in the plan, each of which the invariants must notice, and in what is said of pods that wait, each of which
//! must turn out not to come true.

use drainplan::cluster::planted::{Planted, plant};

use super::fuzz::Fuzz;
use super::outlook::Outlooks;

/// Within so many steps.
const STEPS: u64 = 100_000;
/// Within so many clusters.
const CLUSTERS: u64 = 10_000;

/// The errors, as one says them. A new one takes a variant of [`Planted`], the place where it takes effect, and a line.
const ERRORS: &[(Planted, &str)] = &[
    (Planted::InFlightForgotten, "evictions in flight are not counted"),
    (Planted::ClaimAfterCordon, "a node is cordoned before it is claimed"),
    (Planted::DeadlineFromStart, "deadlines count from the start of a process"),
    (Planted::ClaimLeft, "a claim is left behind"),
    (Planted::TaintLeft, "a taint is left behind"),
    (Planted::WindowIgnored, "windows are ignored"),
    (Planted::ForeignCordonLifted, "a foreign cordon is lifted"),
    (Planted::EvictedAgain, "pods are evicted again after a restart"),
    (Planted::StaleAllowance, "a stale allowance is believed"),
    (Planted::ReportRead, "a report is read back as memory"),
    (Planted::NeverYields, "of two nodes that wait on each other none gives way"),
    (Planted::LabelLeft, "the label of a hand-off is left behind"),
    (Planted::UncordonedNotReady, "a node is put back that is not Ready"),
    (Planted::BootForgotten, "a boot ID is read anew after a restart"),
    (Planted::HandOffForEver, "a hand-off has no deadline"),
    (Planted::VolumesIgnored, "a node is empty although a volume is attached"),
    (Planted::HandedOffIsFree, "nodes that are handed off take no slot"),
    (Planted::ShrunkBelieved, "a budget that has refilled itself is believed"),
    (Planted::OwnerUnrecorded, "an owner is written down too late"),
    (Planted::OwnerForgotten, "an owner is forgotten with its node"),
    (Planted::ReplacementsIgnored, "moved pods are not awaited"),
    (Planted::SoakIgnored, "there is no pause between nodes"),
    (Planted::HealthIgnored, "unhealthy nodes stop nothing"),
    (Planted::NeverLooks, "a pod reborn under its name is evicted without a look"),
    (Planted::ReturnsIgnored, "pods that come back are evicted for ever"),
    (Planted::DomainsMixed, "nodes of two domains are drained together"),
    (Planted::CordonsUncounted, "as many nodes are cordoned as the plans want"),
    (Planted::RightIgnored, "nodes are started while nothing may be evicted"),
    (Planted::OwnPodFirst, "the controller's own pod waits for no other"),
    (Planted::NotHandedOver, "the controller evicts itself without a hand-over"),
];

/// The errors in what is said.
const SAID: &[(Planted, &str)] = &[
    (Planted::AttainableByReady, "an owner can have no more pods than are Ready"),
    (Planted::BareMustBeReady, "a pod without a controller is never Ready again"),
    (Planted::AttainableByOneMore, "a budget can have one pod more than it can"),
    (Planted::ReplacedForSure, "pods that perhaps nobody replaces only take time"),
];

/// Plants one error after the other, all or those with such words; true when each was noticed.
pub fn are_noticed(which: &str) -> bool {
    let all = ERRORS.iter().map(|error| (error, false)).chain(SAID.iter().map(|error| (error, true)));
    let chosen: Vec<_> = all.filter(|((_, words), _)| which == "all" || words.contains(which)).collect();
    let mut noticed = 0;
    for &(&(error, words), is_said) in &chosen {
        plant(error as u8);
        let told = if is_said { confuses() } else { violates() };
        plant(0);
        noticed += usize::from(told.is_ok());
        match told {
            Ok(told) => println!("{words:<51} noticed after {told}"),
            Err(told) => println!("{words:<51} NOT NOTICED within {told}"),
        }
    }
    println!("{noticed} of {} planted errors were noticed", chosen.len());
    noticed == chosen.len() && noticed > 0
}

/// After how much an invariant does not hold.
fn violates() -> Result<String, String> {
    let mut fuzz = Fuzz::default();
    let failure = fuzz.run(STEPS, 1).ok_or_else(|| format!("{} steps", fuzz.steps))?;
    Ok(format!("{:>6} steps, seed {:>3}: {}", fuzz.steps, failure.seed, failure.violation.invariant))
}

/// After how much something was said that is not so.
fn confuses() -> Result<String, String> {
    let mut outlooks = Outlooks::default();
    let failure = outlooks.run(CLUSTERS, 1).ok_or_else(|| format!("{} clusters", outlooks.clusters()))?;
    Ok(format!("{:>6} clusters: {}", outlooks.clusters(), failure.confused.rule))
}
