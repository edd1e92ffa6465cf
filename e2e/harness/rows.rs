//! What users read of every reason: the rows of `reasons.yaml`, and how something that was said is compared with one.
//!
//! A text of a row is compared word by word. What differs from run to run stands there as an example between ‹ and ›; in its
//! place any text of the same kind may be said: a time for a time, a number for a number, words for words, a name for a
//! name. Where the same example stands twice, the same must be said twice.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The file.
pub const FILE: &str = include_str!("../reasons.yaml");
/// What surrounds an example of what differs from run to run.
pub const EXAMPLE: (char, char) = ('‹', '›');

/// What users read of one reason with one outlook, in one situation.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Row {
    /// `Reason/Outlook`, and `/situation` where there are several.
    #[serde(rename = "row")]
    pub name: String,
    /// What the reader is told of the situation, where the reason alone does not tell.
    #[allow(dead_code, reason = "the page is made from it")]
    pub when: Option<String>,
    /// The budgets of the pod, by name.
    #[serde(default)]
    pub budgets: Vec<String>,
    pub message: String,
    /// One line: what to change.
    pub remedy: String,
    /// The end-to-end case in which a real control plane brings it about.
    pub case: Option<u16>,
    /// Why no real control plane is brought to it, and a unit test decides instead.
    pub unit: Option<String>,
    /// What `kubectl drainplan explain` says of that pod.
    #[serde(default)]
    #[allow(dead_code, reason = "unit tests have no program to ask")]
    pub explain: Explain,
}

/// What `kubectl drainplan explain` says of a row's pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Explain {
    /// The same.
    #[default]
    Same,
    /// The same with `--verify`: only the server knows.
    Verify,
    /// Something else: it knows neither a plan nor what has lasted for a while.
    Otherwise,
    /// It is not asked: the moment is too short.
    Unasked,
}

/// What was said of a pod. The remedy may be part of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub reason: String,
    pub outlook: String,
    pub budgets: Vec<String>,
    pub message: String,
    pub remedy: Option<String>,
}

/// All rows, by name.
pub fn all() -> Result<BTreeMap<String, Row>, String> {
    let rows: Vec<Row> =
        serde_saphyr::from_str(FILE).map_err(|error| format!("e2e/reasons.yaml: {error}"))?;
    let mut named = BTreeMap::new();
    for row in rows {
        if row.case.is_some() == row.unit.is_some() {
            return Err(format!("{}: write either case or unit", row.name));
        }
        if let Some(twice) = named.insert(row.name.clone(), row) {
            return Err(format!("{} stands there twice", twice.name));
        }
    }
    Ok(named)
}

impl Row {
    pub fn reason(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    pub fn outlook(&self) -> &str {
        self.name.split('/').nth(1).unwrap_or_default()
    }

    /// How the status of a plan says it: the remedy as a second sentence.
    fn with_remedy(&self) -> String {
        let mut letters = self.remedy.chars();
        let first = letters.next().map(char::to_uppercase).into_iter().flatten();
        let remedy: String = first.chain(letters).collect();
        format!("{}. {remedy}", self.message.trim_end_matches('.'))
    }

    /// Nothing if this is what the row says, else what is different.
    pub fn differs(&self, said: &Said) -> Option<String> {
        if (self.reason(), self.outlook()) != (&said.reason, &said.outlook) {
            return Some(format!("it is {} with {}, not {}", said.reason, said.outlook, self.name));
        }
        if self.budgets != said.budgets {
            return Some(format!("the budgets are {:?}, not {:?}", said.budgets, self.budgets));
        }
        let wanted = match said.remedy {
            Some(_) => self.message.clone(),
            None => self.with_remedy(),
        };
        let mut known = BTreeMap::new();
        if !fits(&wanted, &said.message, &mut known) {
            return Some(format!("it says\n  {}\nnot\n  {wanted}", said.message));
        }
        let remedy = said.remedy.as_ref()?;
        (!fits(&self.remedy, remedy, &mut known))
            .then(|| format!("the remedy is\n  {remedy}\nnot\n  {}", self.remedy))
    }

    /// Whether this is what the row says. If so, the row is changed in each of its parts in turn, and a comparison that
    /// does not see that is an error, too.
    pub fn compare(&self, said: &Said) -> Result<(), String> {
        if let Some(difference) = self.differs(said) {
            return Err(difference);
        }
        for (part, changed) in self.mutants() {
            if changed.differs(said).is_none() {
                return Err(format!("{}: nobody notices when its {part} changes", self.name));
            }
        }
        Ok(())
    }

    fn mutants(&self) -> Vec<(&'static str, Self)> {
        let named =
            |reason: &str, outlook: &str| Self { name: format!("{reason}/{outlook}"), ..self.clone() };
        let (reason, outlook) = (self.reason(), self.outlook());
        let other_reason = if reason == "ServerError" { "BudgetExhausted" } else { "ServerError" };
        let mut mutants = vec![("reason", named(other_reason, outlook))];
        for other in ["WillClear", "MayClear", "NeverClears"].iter().filter(|other| **other != outlook) {
            mutants.push(("outlook", named(reason, other)));
        }
        let more = self.budgets.iter().cloned().chain(["another".to_owned()]).collect();
        mutants.push(("budgets", Self { budgets: more, ..self.clone() }));
        if !self.budgets.is_empty() {
            mutants.push(("budgets", Self { budgets: Vec::new(), ..self.clone() }));
        }
        mutants.push(("message", Self { message: format!("But {}", self.message), ..self.clone() }));
        mutants.push(("remedy", Self { remedy: format!("{} at once", self.remedy), ..self.clone() }));
        mutants
    }
}

/// Whether something that was said is what is written, examples aside.
fn fits(written: &str, said: &str, known: &mut BTreeMap<String, String>) -> bool {
    let Some((before, rest)) = written.split_once(EXAMPLE.0) else { return written == said };
    let (Some(said), Some((example, rest))) = (said.strip_prefix(before), rest.split_once(EXAMPLE.1)) else {
        return false;
    };
    if let Some(same) = known.get(example).cloned() {
        return said.strip_prefix(same.as_str()).is_some_and(|said| fits(rest, said, known));
    }
    // The longest first; a shorter one where the rest does not fit.
    let kind = Kind::of(example);
    let longest = said.find(|letter| !kind.allows(letter)).unwrap_or(said.len());
    let mut ends: Vec<usize> = said.char_indices().map(|(at, _)| at).chain([said.len()]).collect();
    ends.retain(|end| (1..=longest).contains(end));
    for end in ends.into_iter().rev() {
        let (value, after) = said.split_at(end);
        if kind == Kind::Time && Kind::of(value) != Kind::Time {
            continue;
        }
        let mut then = known.clone();
        then.insert(example.to_owned(), value.to_owned());
        if fits(rest, after, &mut then) {
            *known = then;
            return true;
        }
    }
    false
}

/// What an example is an example of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time,
    Number,
    Name,
    /// Somebody else's words, up to the end of the quotation.
    Words,
}

impl Kind {
    fn of(text: &str) -> Self {
        let shape: String = text.chars().map(|it| if it.is_ascii_digit() { '0' } else { it }).collect();
        if shape == "0000-00-00T00:00:00Z" {
            Self::Time
        } else if text.chars().all(|it| it.is_ascii_digit()) {
            Self::Number
        } else if text.contains(' ') {
            Self::Words
        } else {
            Self::Name
        }
    }

    fn allows(self, letter: char) -> bool {
        match self {
            Self::Time => letter.is_ascii_digit() || "-:TZ".contains(letter),
            Self::Number => letter.is_ascii_digit(),
            Self::Name => letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter),
            Self::Words => letter != '”',
        }
    }
}
