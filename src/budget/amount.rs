//! Numbers and percentages of a budget's spec (`apimachinery/pkg/util/intstr: GetScaledValueFromIntOrPercent`).

use crate::cluster::Amount;
use crate::cluster::planted::{Planted, planted};

/// The pods that an amount means out of `total`; both fields of a budget round up.
///
/// The error is the disruption controller's own wording.
pub(super) fn scaled(amount: &Amount, total: i32) -> Result<i32, String> {
    match amount {
        Amount::Int(number) => Ok(*number),
        Amount::Text(text) => {
            let Some(digits) = text.strip_suffix('%') else {
                return Err("invalid value for IntOrString: invalid type: string is not a percentage".into());
            };
            let percent = go_atoi(digits).map_err(|problem| {
                format!(
                    "invalid value for IntOrString: invalid value \"{text}\": strconv.Atoi: parsing \"{digits}\": {problem}"
                )
            })?;
            Ok(percent_of(percent, total))
        }
    }
}

/// Whether the controller can read it.
#[must_use]
pub fn is_amount(amount: &Amount) -> bool {
    scaled(amount, 0).is_ok()
}

fn percent_of(percent: i64, total: i32) -> i32 {
    let hundredths = i128::from(percent) * i128::from(total);
    let whole =
        if planted(Planted::RoundDown) { hundredths.div_euclid(100) } else { -(-hundredths).div_euclid(100) };
    // Out of range only for percentages that the server never stores.
    i32::try_from(whole).unwrap_or(if whole < 0 { i32::MIN } else { i32::MAX })
}

/// Decimal digits with an optional sign, as Go's `strconv.Atoi` takes them.
fn go_atoi(text: &str) -> Result<i64, &'static str> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("invalid syntax");
    }
    text.parse().map_err(|_| "value out of range")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn percent(text: &str, total: i32) -> Result<i32, String> {
        scaled(&Amount::Text(text.into()), total)
    }

    #[test]
    fn percentages_round_up() {
        for (text, total, pods) in [
            ("50%", 7, 4),
            ("30%", 7, 3),
            ("20%", 1, 1),
            ("80%", 1, 1),
            ("0%", 9, 0),
            ("100%", 9, 9),
            ("1%", 1, 1),
            ("33%", 3, 1),
            ("34%", 3, 2),
            ("50%", 0, 0),
            ("50%", -3, -1),
            ("+5%", 100, 5),
        ] {
            assert_eq!(percent(text, total), Ok(pods), "{text} of {total}");
        }
    }

    #[test]
    fn numbers_are_taken_as_they_are() {
        assert_eq!(scaled(&Amount::Int(5), 2), Ok(5));
    }

    #[test]
    fn nonsense_is_refused_in_the_controllers_words() {
        assert_eq!(
            percent("abc%", 7),
            Err("invalid value for IntOrString: invalid value \"abc%\": strconv.Atoi: parsing \"abc\": invalid syntax"
                .into())
        );
        assert_eq!(
            percent("%", 7),
            Err("invalid value for IntOrString: invalid value \"%\": strconv.Atoi: parsing \"\": invalid syntax".into())
        );
        assert_eq!(
            percent("99999999999999999999%", 7),
            Err("invalid value for IntOrString: invalid value \"99999999999999999999%\": strconv.Atoi: parsing \
                 \"99999999999999999999\": value out of range"
                .into())
        );
        assert_eq!(
            percent("5", 7),
            Err("invalid value for IntOrString: invalid type: string is not a percentage".into())
        );
    }

    proptest! {
        #[test]
        fn rounding_up_adds_less_than_one_pod(percent in 0_i64..=100, total in 0_i32..=i32::MAX) {
            let pods = i64::from(percent_of(percent, total));
            let exact = percent * i64::from(total);
            prop_assert!(pods * 100 >= exact && (pods - 1) * 100 < exact || exact == 0 && pods == 0);
        }

        #[test]
        fn any_text_is_answered(text in ".*", total in any::<i32>()) {
            let _ = percent(&text, total);
            let _ = percent(&format!("{text}%"), total);
        }

        #[test]
        fn any_percentage_is_answered(value in any::<i64>(), total in any::<i32>()) {
            let text = format!("{value}%");
            prop_assert!(percent(&text, total).is_ok());
        }
    }
}
