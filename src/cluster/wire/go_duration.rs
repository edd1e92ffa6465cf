//! Durations as Go reads them (`time.ParseDuration`).

use jiff::SignedDuration;

/// Each unit in nanoseconds.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// `1h30m`, `1.5h`, `-2s`; `None` for what Go refuses.
pub(super) fn parse(text: &str) -> Option<SignedDuration> {
    let (sign, mut rest) = match (text.strip_prefix('-'), text.strip_prefix('+')) {
        (Some(rest), _) => (-1, rest),
        (None, Some(rest)) => (1, rest),
        (None, None) => (1, text),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut nanos: i128 = 0;
    loop {
        let (number, after) = split(rest, |c| c.is_ascii_digit() || c == '.')?;
        let (unit, after) = split(after, |c| !c.is_ascii_digit() && c != '.')?;
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
        nanos = nanos.checked_add(scaled(number, *unit)?)?;
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    i64::try_from(nanos).ok().map(|nanos| SignedDuration::from_nanos(sign * nanos))
}

/// The longest beginning of such characters, which must be there, and what follows.
fn split(text: &str, of: impl Fn(char) -> bool) -> Option<(&str, &str)> {
    let end = text.find(|c| !of(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// So many of a unit; digits are needed on one side of the point.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Digits beyond the nanosecond change nothing.
    let fraction: String = fraction.chars().take(15).collect();
    let digits = u32::try_from(fraction.len()).ok()?;
    let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = fraction.checked_mul(unit)? / 10_i128.checked_pow(digits)?;
    whole.checked_mul(unit)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_reads_is_read() {
        let millis = |text| parse(text).map(|duration| duration.as_millis());
        for (text, expected) in [
            ("1.5h", 5_400_000),
            ("1h30m", 5_400_000),
            ("1h.5m", 3_630_000),
            ("90s", 90_000),
            ("2.s", 2_000),
            ("+1ms", 1),
            ("1000us", 1),
            ("1000\u{b5}s", 1),
            ("1000000ns", 1),
            ("-1s", -1_000),
            ("0", 0),
            ("0s", 0),
            ("1.0000000000000000000000001s", 1_000),
        ] {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
        for text in
            ["", "-", "true", "1", "1.5", ".h", "h", "1d", "1h 30m", "1..5h", "1h30", "9999999999h", "١h"]
        {
            assert_eq!(millis(text), None, "{text}");
        }
    }
}
