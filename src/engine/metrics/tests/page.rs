//! docs/metrics.md and the program describe the same metrics.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Per metric its type, and per label its values; those of free labels are left out.
type Described = BTreeMap<String, (String, BTreeMap<String, BTreeSet<String>>)>;

/// Labels whose values are not known beforehand.
const FREE: [&str; 8] = ["version", "reason", "outlook", "method", "code", "plan", "namespace", "budget"];

fn registered() -> Described {
    let metrics = Metrics::new();
    metrics.leading(true);
    let waits = Waits::from([(EXHAUSTED, 1)]);
    let plan = running("a", &[("web", "BudgetExhausted", ago(60))]);
    metrics.show(vec![plan], &HashMap::from([("uid-a", &waits)]));
    metrics.api_request("x", None, Duration::ZERO);
    let text = metrics.encode().unwrap();
    let mut types = BTreeMap::new();
    let mut described = Described::new();
    for line in text.lines() {
        if let Some(line) = line.strip_prefix("# TYPE ") {
            let (family, kind) = line.split_once(' ').unwrap();
            types.insert(family, kind);
        }
        let Some((series, _)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let (sample, labels) = series.split_once('{').unwrap_or((series, ""));
        let family = |suffix: &str| sample.strip_suffix(suffix).filter(|family| types.contains_key(family));
        // A histogram's samples are one metric under the family's name; else the sample's name is the metric's.
        let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| family(suffix));
        let counter = ["_total", "_info"].iter().find_map(|suffix| family(suffix));
        let kind = types[histogram.or(counter).unwrap_or(sample)].to_owned();
        let entry =
            described.entry(histogram.unwrap_or(sample).to_owned()).or_insert((kind, BTreeMap::new()));
        let labels = labels.trim_end_matches('}').split(',').filter_map(|label| label.split_once('='));
        for (label, value) in labels.filter(|(label, _)| *label != "le") {
            let values = entry.1.entry(label.to_owned()).or_default();
            if !FREE.contains(&label) {
                values.insert(value.trim_matches('"').to_owned());
            }
        }
    }
    described
}

fn documented() -> Described {
    let page = include_str!("../../../../docs/metrics.md");
    let rows = page.lines().filter(|line| line.starts_with("| `drainplan_"));
    let quoted =
        |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let labels = cells[3].split(';').filter(|label| !label.is_empty()).map(|label| {
            let mut words = quoted(label).into_iter();
            (words.next().unwrap(), words.collect())
        });
        (cells[1].trim_matches('`').to_owned(), (cells[2].to_owned(), labels.collect()))
    })
    .collect()
}

#[test]
fn the_page_on_metrics_and_the_registry_say_the_same() {
    let (registered, documented) = (registered(), documented());
    assert!(registered.len() > 10, "{registered:?}");
    for (name, what) in &registered {
        assert_eq!(documented.get(name), Some(what), "{name}: docs/metrics.md (left), the program (right)");
    }
    for name in documented.keys() {
        assert!(registered.contains_key(name), "docs/metrics.md describes {name}, which does not exist");
    }
}

#[test]
fn the_page_says_how_many_series_there_are() {
    let page = include_str!("../../../../docs/metrics.md");
    let series =
        |metrics: &Metrics| metrics.encode().unwrap().lines().filter(|line| !line.starts_with('#')).count();
    let metrics = Metrics::new();
    let at_the_start = series(&metrics);
    metrics.api_request("GET", Some(200), Duration::ZERO);
    // One of the counter by code, the others of the histogram.
    let of_method = series(&metrics) - at_the_start - 1;
    let told = format!(
        "is {at_the_start} series at the start, whatever the cluster, {of_method} more for each method"
    );
    assert!(page.contains(&told), "{told}");
}
