//! What the solutions' rungs reach on an H200: a line for each rung, taken from the record of a measurement.

/// A rung's figures for 268435459 numbers of type f32 in blocks of 256 threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The rung.
    pub rung: &'static str,
    /// Bytes of the array by the median time, in GB/s.
    pub gbps: f64,
    /// How many times as fast as `neighbored`.
    pub over_neighbored: f64,
}

static TABLE: &str = include_str!("../../learn/h200.csv");

impl Figures {
    /// Those of every rung that was measured.
    pub fn all() -> impl Iterator<Item = Figures> {
        TABLE.lines().skip(1).filter_map(|line| {
            let mut cells = line.split(',');
            let (rung, gbps, over) = (cells.next()?, cells.next()?, cells.next()?);
            Some(Figures { rung, gbps: gbps.parse().ok()?, over_neighbored: over.parse().ok()? })
        })
    }

    /// Those of a rung; nothing if it was not measured.
    #[must_use]
    pub fn of(rung: &str) -> Option<Figures> {
        Figures::all().find(|figures| figures.rung == rung)
    }

    /// As a sentence of a page has them, marked as the record's.
    #[must_use]
    pub fn told(&self) -> String {
        let Figures { rung, gbps, over_neighbored } = self;
        format!(
            "<!--h200 gbps {rung}-->{gbps:.0}<!--/--> GB/s, <!--h200 times neighbored {rung} .2-->{over_neighbored:.2}<!--/--> times as fast as `neighbored`"
        )
    }
}
