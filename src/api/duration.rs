//! Durations as the resource writes them: `15m`, `1h30m`, `500ms`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The accepted form, also written into the schema.
const FORM: &str = "^([0-9]{1,5}(h|m|s|ms)){1,4}$";

/// A duration above zero. What was written is kept, so that a plan reads back as it was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanDuration {
    written: String,
    value: SignedDuration,
}

impl PlanDuration {
    /// Its length.
    #[must_use]
    pub fn value(&self) -> SignedDuration {
        self.value
    }

    /// From whole minutes, for defaults.
    #[must_use]
    pub fn minutes(minutes: u16) -> Self {
        Self { written: format!("{minutes}m"), value: SignedDuration::from_secs(i64::from(minutes) * 60) }
    }
}

impl fmt::Display for PlanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// Why a text is no duration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is not a duration above zero: write numbers of up to five digits with h, m, s or ms, such as 15m or 1h30m"
)]
pub struct NotADuration(String);

/// The milliseconds of a text in the accepted form.
fn millis(text: &str) -> Option<i64> {
    let mut millis: i64 = 0;
    let mut rest = text;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at_checked(digits)?;
        let letters = after.bytes().take_while(u8::is_ascii_lowercase).count();
        let (unit, after) = after.split_at_checked(letters)?;
        let factor = match unit {
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1_000,
            "ms" => 1,
            _ => return None,
        };
        parts += 1;
        if !(1..=5).contains(&digits) || parts > 4 {
            return None;
        }
        millis += number.parse::<i64>().ok()? * factor;
        rest = after;
    }
    (parts > 0).then_some(millis)
}

impl FromStr for PlanDuration {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let millis =
            millis(text).filter(|millis| *millis > 0).ok_or_else(|| NotADuration(text.to_owned()))?;
        Ok(Self { written: text.to_owned(), value: SignedDuration::from_millis(millis) })
    }
}

impl Serialize for PlanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for PlanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for PlanDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // The second rule looks at the value only when the first one holds, so that exactly one sentence is shown.
        json_schema!({
            "type": "string",
            "maxLength": 20,
            "x-kubernetes-validations": [
                {
                    "rule": format!("self.matches('{FORM}')"),
                    "message": "write a duration as numbers with h, m, s or ms, such as 15m or 1h30m",
                },
                {
                    "rule": format!("!self.matches('{FORM}') || duration(self) > duration('0s')"),
                    "message": "write a duration above zero, such as 15m",
                },
            ],
        })
    }
}

/// A duration that may be zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Pause(PlanDuration);

impl Pause {
    /// Its length.
    #[must_use]
    pub fn value(&self) -> SignedDuration {
        self.0.value
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Pause {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let value =
            millis(text).map(SignedDuration::from_millis).ok_or_else(|| NotADuration(text.to_owned()))?;
        Ok(Self(PlanDuration { written: text.to_owned(), value }))
    }
}

impl<'de> Deserialize<'de> for Pause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Pause {
    fn schema_name() -> Cow<'static, str> {
        "Pause".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": 20,
            "x-kubernetes-validations": [{
                "rule": format!("self.matches('{FORM}')"),
                "message": "write a duration as numbers with h, m, s or ms, such as 90s, or 0s for none",
            }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_schema_accepts() {
        for (text, millis) in [("15m", 900_000), ("1h30m", 5_400_000), ("500ms", 500), ("1m1h", 3_660_000)] {
            assert_eq!(text.parse::<PlanDuration>().unwrap().value(), SignedDuration::from_millis(millis));
        }
    }

    #[test]
    fn a_pause_may_be_none_at_all() {
        assert_eq!("0s".parse::<Pause>().unwrap().value(), SignedDuration::ZERO);
        assert_eq!("1m30s".parse::<Pause>().unwrap().value(), SignedDuration::from_secs(90));
        assert!(["", "s", "-1s"].iter().all(|text| text.parse::<Pause>().is_err()));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "0s", "15", "m", "-1m", "1.5h", "1d", "123456s", "1h1m1s1ms1h", "1m ", "1é"] {
            assert!(text.parse::<PlanDuration>().is_err(), "{text}");
        }
    }
}
