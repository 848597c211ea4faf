//! Which faults are looked for.

use crate::finding::Kind;
use std::str::FromStr;

/// Which faults are looked for. Accesses that cannot be carried out are always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Data races, and `volatile` accesses that nothing orders.
    pub races: bool,
    /// Reads of uninitialised memory. Whether a buffer's bytes are followed is decided when it is allocated.
    pub uninitialised: bool,
    /// Barriers that part of a block reaches or that disagree.
    pub barriers: bool,
    /// Masks of warp instructions, and shuffles from lanes that take no part.
    pub masks: bool,
    /// Remarks, too, of the checks that are on: stores of the same value, loads that are thrown away, barriers and masks without threads that have ended.
    pub strict: bool,
}

impl Checks {
    /// Every fault, without remarks.
    pub const ALL: Checks =
        Checks { races: true, uninitialised: true, barriers: true, masks: true, strict: false };
    /// Only what cannot be carried out.
    pub const NONE: Checks =
        Checks { races: false, uninitialised: false, barriers: false, masks: false, strict: false };

    pub(crate) fn allow(self, kind: Kind) -> bool {
        let on = match kind {
            Kind::Race
            | Kind::SameValue
            | Kind::DiscardedRead
            | Kind::NarrowScope
            | Kind::UnorderedVolatile
            | Kind::MissingProxyFence => self.races,
            Kind::Uninitialised => self.uninitialised,
            Kind::PartialBarrier | Kind::BarrierMismatch => self.barriers,
            Kind::MaskOmitsLane
            | Kind::MaskNamesAbsentLane
            | Kind::MaskNamesEndedLane
            | Kind::ShuffleFromInactive => self.masks,
            _ => true,
        };
        on && (self.strict || !kind.is_remark())
    }
}

impl Checks {
    /// The names of what can be switched.
    pub const NAMES: [&str; 5] = ["races", "uninitialised", "barriers", "masks", "strict"];

    /// The names of what is on.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let Checks { races, uninitialised, barriers, masks, strict } = self;
        let on = [races, uninitialised, barriers, masks, strict];
        Self::NAMES.into_iter().zip(on).filter(|(_, on)| *on).map(|(name, _)| name).collect()
    }
}

/// Reads `all`, `none`, or some of `all` and [`Checks::NAMES`], with commas between them. `strict` alone means that of all.
impl FromStr for Checks {
    type Err = UnknownCheck;

    fn from_str(text: &str) -> Result<Checks, UnknownCheck> {
        let mut checks = Checks::NONE;
        if text == "none" {
            return Ok(checks);
        }
        for word in text.split(',') {
            match word.trim() {
                "all" => checks = Checks { strict: checks.strict, ..Checks::ALL },
                "strict" => checks.strict = true,
                "races" => checks.races = true,
                "uninitialised" => checks.uninitialised = true,
                "barriers" => checks.barriers = true,
                "masks" => checks.masks = true,
                _ => return Err(UnknownCheck { word: word.into() }),
            }
        }
        let only_strict = Checks { strict: true, ..Checks::NONE };
        Ok(if checks == only_strict { Checks { strict: true, ..Checks::ALL } } else { checks })
    }
}

/// A word that names no check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCheck {
    word: String,
}

impl core::fmt::Display for UnknownCheck {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let UnknownCheck { word } = self;
        write!(
            f,
            "{word:?} is unknown; expected all, none, or some of all, {}",
            Checks::NAMES.join(", ")
        )
    }
}

impl core::error::Error for UnknownCheck {}

impl Default for Checks {
    fn default() -> Checks {
        Checks::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_all_none_or_a_list() {
        let checks = |text: &str| text.parse::<Checks>();
        assert_eq!(checks("all"), Ok(Checks::ALL));
        assert_eq!(checks("none"), Ok(Checks::NONE));
        let two = Checks { races: true, masks: true, ..Checks::NONE };
        assert_eq!(checks("races,masks"), Ok(two));
        let strict = Checks { strict: true, ..Checks::ALL };
        for text in ["strict", "all,strict", "strict, all"] {
            assert_eq!(checks(text), Ok(strict), "{text}");
        }
        for bad in ["", "all,none", "race", "races;masks"] {
            assert!(checks(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn checks_have_names() {
        assert_eq!(Checks { strict: true, ..Checks::ALL }.names(), Checks::NAMES);
        assert_eq!(Checks { races: true, ..Checks::NONE }.names(), ["races"]);
    }
}
