//! The five fields of a schedule, checked and written in numbers.

/// A field: its name, its range, and the names its values may have.
struct Field {
    name: &'static str,
    first: u16,
    last: u16,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: [Field; 5] = [
    Field { name: "minute", first: 0, last: 59, names: &[] },
    Field { name: "hour", first: 0, last: 23, names: &[] },
    Field { name: "day of month", first: 1, last: 31, names: &[] },
    Field { name: "month", first: 1, last: 12, names: &MONTHS },
    Field { name: "day of week", first: 0, last: 7, names: &WEEKDAYS },
];

/// A schedule's fields in numbers.
pub struct Pattern {
    /// The five fields, with `*`, lists, ranges and steps.
    pub text: String,
    /// A day must match both day fields. As in a CronJob, that is so when one of them holds a star; when both are
    /// restricted, either is enough (robfig/cron: `spec.go: dayMatches`).
    pub both_days: bool,
}

impl Pattern {
    /// Reads the fields as a CronJob does: names of months and weekdays in their fields only, `?` for `*`, Sunday 0 or 7.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written: Vec<&str> = text.split_whitespace().collect();
        if written.len() != FIELDS.len() {
            return Err("write five fields, minute hour day-of-month month day-of-week, as in 0 22 * * SAT"
                .to_owned());
        }
        let fields: Vec<String> =
            written.iter().zip(&FIELDS).map(|(text, field)| field.read(text)).collect::<Result<_, _>>()?;
        let star = |at: usize| fields.get(at).is_some_and(|field| field.contains('*'));
        Ok(Self { text: fields.join(" "), both_days: star(2) || star(4) })
    }
}

impl Field {
    fn read(&self, text: &str) -> Result<String, String> {
        let items: Vec<String> = text.split(',').map(|item| self.item(item)).collect::<Result<_, _>>()?;
        Ok(items.join(","))
    }

    /// `*`, `5`, `5-10`, each with or without `/2`.
    fn item(&self, item: &str) -> Result<String, String> {
        let (base, step) = match item.split_once('/') {
            None => (item, None),
            Some((base, step)) => (base, Some(self.step(item, step)?)),
        };
        let base = if base == "*" || (base == "?" && self.name.starts_with("day")) {
            "*".to_owned()
        } else if let Some((from, to)) = base.split_once('-') {
            let (from, mut to) = (self.value(item, from)?, self.value(item, to)?);
            if self.last == 7 && to == 0 && from > 0 {
                to = 7;
            }
            if from > to {
                return Err(format!("{item} in the field {} ends before it begins", self.name));
            }
            format!("{from}-{to}")
        } else {
            self.value(item, base)?.to_string()
        };
        Ok(step.map_or(base.clone(), |step| format!("{base}/{step}")))
    }

    fn step(&self, item: &str, step: &str) -> Result<u16, String> {
        let number = number(step).filter(|step| (1..=self.last).contains(step));
        number.ok_or_else(|| format!("{item} in the field {} has no step from 1 to {}", self.name, self.last))
    }

    fn value(&self, item: &str, value: &str) -> Result<u16, String> {
        let named = || {
            let at = self.names.iter().position(|name| name.eq_ignore_ascii_case(value))?;
            u16::try_from(at).ok().map(|at| at + self.first)
        };
        let value = number(value).or_else(named).filter(|value| (self.first..=self.last).contains(value));
        value.ok_or_else(|| {
            let names = match (self.names.first(), self.names.last()) {
                (Some(first), Some(last)) => format!(" or {first} to {last}"),
                _ => String::new(),
            };
            format!(
                "{item} does not fit the field {}: it takes {} to {}{names}",
                self.name, self.first, self.last
            )
        })
    }
}

fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
