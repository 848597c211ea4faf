//! What integers count: dates, times of day, moments and durations.

use core::fmt;
use warpfold_core::{Error, Op, Result, Rules};
use warpfold_cpu::groups::words::{self, damaged};

/// A step of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Tick {
    /// A day of 24 hours.
    Day,
    /// A second.
    Second,
    /// A millisecond.
    Milli,
    /// A microsecond.
    Micro,
    /// A nanosecond.
    Nano,
}

impl Tick {
    /// From the longest to the shortest. Their places are their codes in byte forms.
    const ALL: [Tick; 5] = [Tick::Day, Tick::Second, Tick::Milli, Tick::Micro, Tick::Nano];

    /// How many nanoseconds it has.
    #[must_use]
    pub const fn nanoseconds(self) -> u64 {
        match self {
            Tick::Day => 86_400_000_000_000,
            Tick::Second => 1_000_000_000,
            Tick::Milli => 1_000_000,
            Tick::Micro => 1_000,
            Tick::Nano => 1,
        }
    }

    /// As NumPy and Arrow write it: `us`.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Tick::Day => "D",
            Tick::Second => "s",
            Tick::Milli => "ms",
            Tick::Micro => "us",
            Tick::Nano => "ns",
        }
    }

    const fn plural(self) -> &'static str {
        match self {
            Tick::Day => "days",
            Tick::Second => "seconds",
            Tick::Milli => "milliseconds",
            Tick::Micro => "microseconds",
            Tick::Nano => "nanoseconds",
        }
    }
}

/// Dates, times and durations are integers. What they count decides which operations make
/// sense, how an answer is printed, and which columns go together.
///
/// ```
/// use warpfold::{Tick, Unit};
///
/// assert_eq!(Unit::Date(Tick::Day).show(19_723), "2024-01-01");
/// assert_eq!(Unit::Timestamp(Tick::Micro, None).show(1_500_000), "1970-01-01T00:00:01.500");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Days, or milliseconds, since 1970-01-01.
    Date(Tick),
    /// A time of the day, since midnight.
    Time(Tick),
    /// A moment, since 1970-01-01: in UTC, with the name of the zone that it is for; or
    /// wherever the data does not say.
    Timestamp(Tick, Option<String>),
    /// A length of time.
    Duration(Tick),
    /// A decimal, with so many digits behind the point.
    Decimal(u8),
}

/// The time zone of moments that came from several.
const UTC: &str = "UTC";

impl Unit {
    /// Whether the answer to `op` is the same whatever the step and the origin, or counts
    /// the same steps.
    #[must_use]
    pub fn allows(&self, op: Op) -> bool {
        let decimal = self.is_number();
        match op {
            Op::Count
            | Op::CountNan
            | Op::ArgMin
            | Op::ArgMax
            | Op::ArgMinMax
            | Op::Min
            | Op::Max
            | Op::MinMax
            | Op::Range
            | Op::Mean => true,
            Op::Var => decimal,
            Op::Std => true,
            Op::Sum | Op::Norm1 | Op::NormInf | Op::CountNonzero | Op::Any | Op::All => {
                matches!(self, Unit::Duration(_)) || decimal
            }
            _ => false,
        }
    }

    /// Whether answers to `op` that are integers count the same: dates where these are
    /// elements, as of `min`; sums of decimals. All others are numbers.
    #[must_use]
    pub fn is_kept_by(&self, op: Op) -> bool {
        let linear = matches!(op, Op::Sum | Op::Norm1 | Op::NormInf | Op::Range);
        matches!(op, Op::Min | Op::Max | Op::MinMax) || linear && self.is_number()
    }

    /// Whether it is one of numbers, and not of time.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(self, Unit::Decimal(_))
    }

    /// The rules under which states of a unit finish.
    pub(crate) fn rules_for(unit: Option<&Unit>, rules: &Rules) -> Rules {
        match unit {
            Some(Unit::Decimal(digits)) => rules.decimals(*digits),
            _ => *rules,
        }
    }

    /// By what its integers are multiplied where they become those of a finer unit of the same
    /// kind, if that has 64 bits.
    pub(crate) fn factor_to(&self, finer: &Unit) -> Option<u64> {
        match (self, finer) {
            (Unit::Decimal(few), Unit::Decimal(many)) => {
                10u64.checked_pow(u32::from(many.saturating_sub(*few)))
            }
            _ => Some(self.tick()?.nanoseconds() / finer.tick()?.nanoseconds()),
        }
    }

    /// As Arrow names a type of such elements: `timestamp[us, UTC]`.
    #[must_use]
    pub fn type_name(&self) -> String {
        let tick = self.tick().map_or("", Tick::symbol);
        match self {
            Unit::Decimal(digits) => format!("decimal({digits})"),
            Unit::Date(_) => "date".into(),
            Unit::Time(_) => format!("time[{tick}]"),
            Unit::Timestamp(_, None) => format!("timestamp[{tick}]"),
            Unit::Timestamp(_, Some(zone)) => format!("timestamp[{tick}, {zone}]"),
            Unit::Duration(_) => format!("duration[{tick}]"),
        }
    }

    /// The step of time that is counted; decimals have none.
    #[must_use]
    pub fn tick(&self) -> Option<Tick> {
        match self {
            Unit::Date(tick)
            | Unit::Time(tick)
            | Unit::Timestamp(tick, _)
            | Unit::Duration(tick) => Some(*tick),
            Unit::Decimal(_) => None,
        }
    }

    /// The unit that values of two go together in, which is the finer one, and by what each
    /// of the two is multiplied. Moments of different time zones go together in UTC.
    ///
    /// # Errors
    /// [`Error::UnitMismatch`] for units that have none: a date and a moment, moments with
    /// and without a time zone, plain numbers and anything else.
    pub fn joined(left: Option<&Unit>, right: Option<&Unit>) -> Result<(Option<Unit>, [u64; 2])> {
        let (l, r) = match (left, right) {
            (None, None) => return Ok((None, [1, 1])),
            (Some(left), Some(right)) if left == right => {
                return Ok((Some(left.clone()), [1, 1]));
            }
            (Some(left), Some(right)) => (left, right),
            _ => return Err(mismatch(left, right)),
        };
        let joined = match (l, r) {
            (Unit::Date(l), Unit::Date(r)) => Unit::Date(*l.max(r)),
            (Unit::Time(l), Unit::Time(r)) => Unit::Time(*l.max(r)),
            (Unit::Timestamp(l, None), Unit::Timestamp(r, None)) => {
                Unit::Timestamp(*l.max(r), None)
            }
            (Unit::Timestamp(l, Some(here)), Unit::Timestamp(r, Some(there))) => {
                let zone = if here == there { here.clone() } else { UTC.into() };
                Unit::Timestamp(*l.max(r), Some(zone))
            }
            (Unit::Duration(l), Unit::Duration(r)) => Unit::Duration(*l.max(r)),
            (Unit::Decimal(l), Unit::Decimal(r)) => Unit::Decimal(*l.max(r)),
            _ => return Err(mismatch(left, right)),
        };
        match (l.factor_to(&joined), r.factor_to(&joined)) {
            (Some(mine), Some(theirs)) => Ok((Some(joined), [mine, theirs])),
            _ => Err(mismatch(left, right)),
        }
    }

    /// The error that some value of `from` does not fit 64 bits in this unit.
    #[doc(hidden)]
    #[must_use]
    pub fn too_coarse(&self, from: &Unit) -> Error {
        Error::UnitMismatch {
            left: format!("{from} that reach beyond 64 bits"),
            right: self.to_string(),
            hint: "cast the finer ones to the coarser unit, or leave out what lies so far away",
        }
    }

    /// What an integer stands for: dates and times as ISO 8601 has them, decimals with all
    /// their digits.
    #[must_use]
    pub fn show(&self, count: impl Into<i128>) -> String {
        let count = count.into();
        let Some(tick) = self.tick() else {
            return Unit::rules_for(Some(self), &Rules::new()).shown(&count);
        };
        let per_day = i128::from(Tick::Day.nanoseconds());
        let nanoseconds = count * i128::from(tick.nanoseconds());
        let (day, rest) = (nanoseconds.div_euclid(per_day), nanoseconds.rem_euclid(per_day));
        let sign = if count < 0 { "-" } else { "" };
        match self {
            // A date of milliseconds that is none has a time.
            Unit::Date(_) if rest == 0 => date(day),
            Unit::Date(_) | Unit::Timestamp(_, None) => format!("{}T{}", date(day), time(rest)),
            Unit::Timestamp(_, Some(_)) => format!("{}T{}Z", date(day), time(rest)),
            Unit::Time(_) => format!("{sign}{}", time(nanoseconds.abs())),
            Unit::Duration(_) => {
                let (seconds, rest) = whole(nanoseconds.abs());
                format!("{sign}PT{seconds}{}S", fraction(rest))
            }
            Unit::Decimal(_) => count.to_string(),
        }
    }

    /// What stands for it in byte forms; nothing in particular is 0.
    pub(crate) fn write(unit: Option<&Unit>, out: &mut Vec<u8>) {
        let Some(unit) = unit else { return out.push(0) };
        let (code, zone) = match unit {
            Unit::Date(_) => (1, None),
            Unit::Time(_) => (2, None),
            Unit::Timestamp(_, None) => (3, None),
            Unit::Timestamp(_, Some(zone)) => (4, Some(zone)),
            Unit::Duration(_) => (5, None),
            Unit::Decimal(digits) => return out.extend([6, *digits]),
        };
        out.extend([code, unit.tick().map_or(0, |tick| tick as u8)]);
        if let Some(zone) = zone {
            words::write(out, zone.len() as u64);
            out.extend_from_slice(zone.as_bytes());
        }
    }

    /// Reads what [`write`](Self::write) wrote off the front.
    pub(crate) fn read(bytes: &mut &[u8]) -> Result<Option<Unit>> {
        let code = words::take(bytes, 1)?[0];
        if code == 0 {
            return Ok(None);
        }
        let step = words::take(bytes, 1)?[0];
        if code == 6 {
            return Ok(Some(Unit::Decimal(step)));
        }
        let tick = Tick::ALL.get(usize::from(step));
        let tick = *tick.ok_or_else(|| damaged("its unit has an unknown step"))?;
        Ok(Some(match code {
            1 => Unit::Date(tick),
            2 => Unit::Time(tick),
            3 => Unit::Timestamp(tick, None),
            4 => {
                let len = words::read(bytes)?;
                let zone = words::take(bytes, len)?.to_vec();
                let zone = String::from_utf8(zone);
                Unit::Timestamp(tick, Some(zone.map_err(|_| damaged("its time zone is no text"))?))
            }
            5 => Unit::Duration(tick),
            _ => return Err(damaged("its unit is unknown")),
        }))
    }
}

/// `microseconds since 1970-01-01 UTC`.
impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = match self {
            Unit::Date(_) | Unit::Timestamp(_, None) => " since 1970-01-01",
            Unit::Timestamp(_, Some(_)) => " since 1970-01-01 UTC",
            Unit::Time(_) => " since midnight",
            Unit::Duration(_) => "",
            Unit::Decimal(digits) => {
                return f.pad(&format!("decimals with {digits} digits behind the point"));
            }
        };
        f.pad(&format!("{}{since}", self.tick().map_or("", Tick::plural)))
    }
}

/// The error that values of two units do not go together.
fn mismatch(left: Option<&Unit>, right: Option<&Unit>) -> Error {
    let zoned = |unit: Option<&Unit>| matches!(unit, Some(Unit::Timestamp(..)));
    let hint = match (left, right) {
        (None, _) | (_, None) => {
            "cast one of the two, so that both are plain numbers or neither is"
        }
        _ if zoned(left) && zoned(right) => "give both a time zone, or neither",
        _ => "cast one of the two to the type of the other",
    };
    let [left, right] = [left, right].map(|unit| {
        let kind = match unit {
            None => return "plain numbers".into(),
            Some(Unit::Date(_)) => "dates",
            Some(Unit::Time(_)) => "times of the day",
            Some(Unit::Timestamp(_, None)) => "timestamps without a time zone",
            Some(Unit::Timestamp(..)) => "timestamps with a time zone",
            Some(Unit::Duration(_)) => "durations",
            Some(unit @ Unit::Decimal(_)) => return unit.to_string(),
        };
        unit.map_or_else(String::new, |unit| format!("{unit} ({kind})"))
    });
    Error::UnitMismatch { left, right, hint }
}

/// `2024-01-01`, of a day since 1970-01-01: years of the Gregorian calendar, with a sign
/// where they have not four digits.
fn date(day: i128) -> String {
    // Days since the 1st of March of the year 0, in eras of 400 years.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i128::from(month <= 2);
    let sign = match year {
        ..0 => "-",
        10_000.. => "+",
        _ => "",
    };
    format!("{sign}{:04}-{month:02}-{day:02}", year.abs())
}

/// `12:34:56.789`
fn time(nanoseconds: i128) -> String {
    let (seconds, rest) = whole(nanoseconds);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}{}", fraction(rest))
}

/// Seconds, and the nanoseconds that are left.
fn whole(nanoseconds: i128) -> (i128, i128) {
    let second = i128::from(Tick::Second.nanoseconds());
    (nanoseconds / second, nanoseconds % second)
}

/// Nothing, or three, six or nine digits behind a point.
fn fraction(nanoseconds: i128) -> String {
    match nanoseconds {
        0 => String::new(),
        n if n % 1_000_000 == 0 => format!(".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => format!(".{:06}", n / 1_000),
        n => format!(".{n:09}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Unit> {
        let of = |tick| {
            let zone = |name: &str| Unit::Timestamp(tick, Some(name.into()));
            let local = Unit::Timestamp(tick, None);
            let others = [Unit::Date(tick), Unit::Time(tick), local, Unit::Duration(tick)];
            others.into_iter().chain([zone("UTC"), zone("Europe/Berlin")])
        };
        Tick::ALL.into_iter().flat_map(of).chain([0, 2, 9].map(Unit::Decimal)).collect()
    }

    #[test]
    fn no_unit_is_squared_and_no_origin_is_added_up() {
        for op in Op::ALL {
            let point = Unit::Date(Tick::Day).allows(op);
            let length = Unit::Duration(Tick::Nano).allows(op);
            assert!(length || !point, "{op}");
            let squared = matches!(op, Op::Var | Op::SumSq | Op::Dot | Op::Prod | Op::LogSumExp);
            assert!(!(squared && length), "{op}");
            assert!(point || !Unit::Date(Tick::Day).is_kept_by(op), "{op}");
            assert!(Unit::Decimal(2).allows(op) || !Unit::Decimal(2).is_kept_by(op), "{op}");
        }
        assert!(!Unit::Date(Tick::Day).allows(Op::Sum));
        assert!(Unit::Duration(Tick::Milli).allows(Op::Sum));
    }

    #[test]
    fn integers_are_printed_as_what_they_stand_for() {
        let (day, stamp) = (Unit::Date(Tick::Day), |tick| Unit::Timestamp(tick, None));
        for (unit, count, text) in [
            (day.clone(), 0, "1970-01-01"),
            (day.clone(), -1, "1969-12-31"),
            (day.clone(), 11_016, "2000-02-29"),
            (day.clone(), -719_529, "-0001-12-31"),
            (day.clone(), -719_528, "0000-01-01"),
            (day, 2_932_897, "+10000-01-01"),
            (Unit::Date(Tick::Milli), 86_400_000, "1970-01-02"),
            (Unit::Date(Tick::Milli), 1, "1970-01-01T00:00:00.001"),
            (stamp(Tick::Second), 1_704_067_199, "2023-12-31T23:59:59"),
            (stamp(Tick::Milli), -1, "1969-12-31T23:59:59.999"),
            (stamp(Tick::Nano), 1_000_001, "1970-01-01T00:00:00.001000001"),
            (stamp(Tick::Nano), i64::MIN, "1677-09-21T00:12:43.145224192"),
            (stamp(Tick::Second), i64::MAX, "+292277026596-12-04T15:30:07"),
            (
                Unit::Timestamp(Tick::Micro, Some("Asia/Tokyo".into())),
                5,
                "1970-01-01T00:00:00.000005Z",
            ),
            (Unit::Time(Tick::Micro), 3_723_000_000, "01:02:03"),
            (Unit::Time(Tick::Second), -1, "-00:00:01"),
            (Unit::Duration(Tick::Milli), -90_500, "-PT90.500S"),
            (Unit::Decimal(0), -5, "-5"),
            (Unit::Decimal(2), -5, "-0.05"),
            (Unit::Decimal(3), 1_234_500, "1234.500"),
            (Unit::Decimal(18), i64::MIN, "-9.223372036854775808"),
            (Unit::Duration(Tick::Nano), i64::MIN, "-PT9223372036.854775808S"),
        ] {
            assert_eq!(unit.show(count), text, "{unit:?} {count}");
        }
    }

    /// Every day for a thousand years, by counting.
    #[test]
    fn days_follow_the_calendar() {
        let (mut year, mut month, mut day) = (1600, 1, 1);
        for count in -135_140i64..230_000 {
            let text = Unit::Date(Tick::Day).show(count);
            assert_eq!(text, format!("{year:04}-{month:02}-{day:02}"), "{count}");
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days = [31, 28 + i32::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            day += 1;
            if day > days[month - 1] {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }

    #[test]
    fn joining_takes_the_finer_step_in_any_order() {
        for left in all() {
            for right in all() {
                let joined = Unit::joined(Some(&left), Some(&right));
                let turned = Unit::joined(Some(&right), Some(&left));
                match (joined, turned) {
                    (Ok((joined, [a, b])), Ok((turned, factors))) => {
                        assert_eq!((&joined, [b, a]), (&turned, factors), "{left:?} {right:?}");
                        let unit = joined.unwrap();
                        for (one, factor) in [(&left, a), (&right, b)] {
                            let (own, joined) = (one.show(3), unit.show(3 * factor as i64));
                            let own = own.trim_end_matches(['.', '0']);
                            let joined = joined.trim_end_matches(['.', '0']);
                            assert_eq!(own, joined, "{one:?}");
                        }
                    }
                    (Err(error), Err(_)) => {
                        let kind = core::mem::discriminant::<Unit>;
                        let zone = |unit: &Unit| matches!(unit, Unit::Timestamp(_, Some(_)));
                        assert!(kind(&left) != kind(&right) || zone(&left) != zone(&right));
                        assert!(error.to_string().contains(&right.to_string()), "{error}");
                        assert!(error.hint().is_some());
                    }
                    _ => panic!("{left:?} and {right:?} go together one way only"),
                }
            }
            assert!(Unit::joined(Some(&left), None).is_err());
            assert!(Unit::joined(None, Some(&left)).is_err());
        }
    }

    #[test]
    fn units_come_back_from_their_bytes() {
        for unit in all().into_iter().map(Some).chain([None]) {
            let mut out = Vec::new();
            Unit::write(unit.as_ref(), &mut out);
            for cut in 0..out.len() {
                assert!(Unit::read(&mut &out[..cut]).is_err(), "{unit:?}");
            }
            let mut rest = &out[..];
            assert_eq!(Unit::read(&mut rest), Ok(unit));
            assert!(rest.is_empty());
        }
        for bytes in [&[9, 0][..], &[1, 9], &[4, 1, 1, 0xff]] {
            assert!(Unit::read(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
    }
}
