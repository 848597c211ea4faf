//! The magnitude of a product of integers, zeros left out, as far as any answer
//! depends on it.
//!
//! Below 2^1024 it is exact. From there on no type holds it and every float type
//! rounds it to infinity: only that is kept. No factor is below 1, so that which of
//! the two it is depends on all factors and not on their order.
//!
//! Kernels keep 128 bits, and so did earlier versions. Of a product that left these
//! the digits are *lost*: it is 2^128 or more, and that is all. Such a product
//! counts as a factor of its own, beside the exact product of all others. It takes
//! 128 of the 1024 bits, as it is no smaller: what remains known is a lower
//! bound, and again no matter of order.

/// Words of 64 bits below 2^1024.
const WORDS: usize = 16;

/// Words of the least product whose digits are lost.
const LOST_WORDS: usize = 2;

/// A magnitude that is not 0. Each has one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Magnitude {
    /// Below 2^128.
    Short(u128),
    /// From 2^128 on, below 2^1024 as far as is known.
    Long(Box<Long>),
    /// 2^1024 or more.
    Beyond,
}

/// A product of more than 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Long {
    /// The product of the factors that are known, least word first.
    words: [u64; WORDS],
    /// How many factors of 2^128 or more are known as such only.
    lost: u8,
}

impl Long {
    fn short(magnitude: u128) -> Long {
        let mut words = [0; WORDS];
        words[0] = magnitude as u64;
        words[1] = (magnitude >> 64) as u64;
        Long { words, lost: 0 }
    }

    /// The words up to the highest that is not 0.
    fn known(&self) -> &[u64] {
        trimmed(&self.words)
    }

    /// Whether nothing says that the product is 2^1024 or more: the known factors are
    /// at least `2^(64 (words - 1))`, and the lost ones at least 2^128 each.
    fn fits(&self) -> bool {
        self.known().len() + LOST_WORDS * usize::from(self.lost) <= WORDS
    }

    /// The product with another one, unless it is 2^1024 or more.
    fn times(&self, words: &[u64], lost: u8) -> Option<Long> {
        let words = trimmed(words);
        let mut product = [0u64; WORDS];
        for (i, &a) in self.known().iter().enumerate().filter(|&(_, &a)| a != 0) {
            let mut carry = 0;
            // One more, for the carry.
            for (j, &b) in words.iter().chain(&[0]).enumerate() {
                // At most (2^64 - 1)^2 + 2 (2^64 - 1) = 2^128 - 1.
                let old = product.get(i + j).copied().unwrap_or(0);
                let sum = u128::from(a) * u128::from(b) + u128::from(old) + carry;
                carry = sum >> 64;
                match product.get_mut(i + j) {
                    Some(word) => *word = sum as u64,
                    // The product is the sum of such rows.
                    None if sum != 0 => return None,
                    None => {}
                }
            }
        }
        let product = Long { words: product, lost: self.lost.saturating_add(lost) };
        product.fits().then_some(product)
    }
}

fn trimmed(words: &[u64]) -> &[u64] {
    let len = words.iter().rposition(|&word| word != 0).map_or(0, |top| top + 1);
    &words[..len]
}

impl Magnitude {
    /// The product of no factors.
    pub(super) const ONE: Magnitude = Magnitude::Short(1);

    /// The most bytes of memory beside its own.
    pub(super) const MOST_BYTES: usize = size_of::<Long>();

    /// 2^128 or more: more is not known.
    pub(super) fn lost() -> Magnitude {
        Magnitude::Long(Box::new(Long { lost: 1, ..Long::short(1) }))
    }

    fn of(product: Option<Long>) -> Magnitude {
        product.map_or(Magnitude::Beyond, |long| Magnitude::Long(Box::new(long)))
    }

    /// Multiplies by an integer that is not 0.
    #[inline]
    pub(super) fn times(&mut self, factor: u64) {
        if let Magnitude::Short(short) = self
            && let Some(product) = short.checked_mul(u128::from(factor))
        {
            *short = product;
        } else if !matches!(self, Magnitude::Beyond) {
            self.times_long(factor);
        }
    }

    /// Less than a thousand times for each product, since 1 changes nothing.
    #[cold]
    #[inline(never)]
    fn times_long(&mut self, factor: u64) {
        match self {
            Magnitude::Beyond => {}
            _ if factor == 1 => {}
            Magnitude::Short(short) => {
                *self = Magnitude::of(Long::short(*short).times(&[factor], 0));
            }
            Magnitude::Long(long) => match long.times(&[factor], 0) {
                Some(product) => **long = product,
                None => *self = Magnitude::Beyond,
            },
        }
    }

    /// Multiplies by the magnitude of another product.
    pub(super) fn merge(&mut self, other: &Magnitude) {
        if let (Magnitude::Short(a), &Magnitude::Short(b)) = (&mut *self, other)
            && let Some(product) = a.checked_mul(b)
        {
            *a = product;
            return;
        }
        let long = |magnitude: &Magnitude| match magnitude {
            Magnitude::Short(short) => Some(Long::short(*short)),
            Magnitude::Long(long) => Some(**long),
            Magnitude::Beyond => None,
        };
        let product = long(self).zip(long(other)).and_then(|(a, b)| a.times(&b.words, b.lost));
        *self = Magnitude::of(product);
    }

    /// Whether digits are lost that an answer may need.
    pub(super) fn lacks_digits(&self) -> bool {
        matches!(self, Magnitude::Long(long) if long.lost > 0)
    }

    /// The lowest 64 bits, if they are known.
    pub(super) fn low(&self) -> Option<u64> {
        match self {
            Magnitude::Short(short) => Some(*short as u64),
            Magnitude::Long(long) => (long.lost == 0).then_some(long.words[0]),
            Magnitude::Beyond => None,
        }
    }

    /// An integer of 64 bits and a power of two whose product rounds to every float
    /// type as the magnitude does; `None` if that takes digits that are lost.
    ///
    /// These are the 64 leading bits, the last one set if any below is: no type
    /// has more than 53, so that the rounding sees the same.
    pub(super) fn leading(&self) -> Option<(u64, i64)> {
        let short;
        let words = match self {
            Magnitude::Short(magnitude) => {
                short = Long::short(*magnitude);
                short.known()
            }
            Magnitude::Long(long) if long.lost == 0 => long.known(),
            Magnitude::Long(_) => return None,
            // Far beyond all types.
            Magnitude::Beyond => return Some((1, 4096)),
        };
        let [rest @ .., next, top] = words else {
            return words.first().map(|&word| (word, 0));
        };
        let free = top.leading_zeros();
        let pair = (u128::from(*top) << 64 | u128::from(*next)) << free;
        let sticky = pair as u64 != 0 || rest.iter().any(|&word| word != 0);
        let exponent = 64 * (rest.len() as i64 + 1) - i64::from(free);
        Some(((pair >> 64) as u64 | u64::from(sticky), exponent))
    }

    /// The factors whose digits are lost, and the words of the others' product, of
    /// a long magnitude.
    pub(super) fn long_parts(&self) -> Option<(u8, &[u64])> {
        match self {
            Magnitude::Long(long) => Some((long.lost, long.known())),
            _ => None,
        }
    }

    /// The long magnitude of these parts, if there is one.
    pub(super) fn from_long_parts(lost: u8, words: &[u64]) -> Option<Magnitude> {
        let mut long = Long { words: [0; WORDS], lost };
        long.words.get_mut(..words.len())?.copy_from_slice(words);
        let least = if lost > 0 { 1 } else { 1 + LOST_WORDS };
        let one_form = long.known().len() == words.len() && words.len() >= least;
        (one_form && long.fits()).then(|| Magnitude::Long(Box::new(long)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(factors: &[u64]) -> Magnitude {
        let mut product = Magnitude::ONE;
        factors.iter().for_each(|&factor| product.times(factor));
        product
    }

    #[test]
    fn forms_change_where_they_should() {
        assert_eq!(of(&[1 << 63, 1 << 63, 2]), Magnitude::Short(1 << 127));
        assert_eq!(of(&[u64::MAX; 2]), Magnitude::Short(u128::from(u64::MAX).pow(2)));
        assert_eq!(of(&[1 << 63, 1 << 63, 4]).long_parts(), Some((0, &[0, 0, 1][..])));
        let half = [1 << 63; 16];
        // 2^1008, 2^1023, 2^1024.
        assert_eq!(of(&half).long_parts().map(|(_, words)| words.len()), Some(16));
        let (mut last, mut beyond) = (of(&half), of(&half));
        last.times(1 << 15);
        assert_eq!(last.leading(), Some((1 << 63, 1023 - 63)));
        beyond.times(1 << 15);
        beyond.times(2);
        assert_eq!(beyond, Magnitude::Beyond);
        last.merge(&Magnitude::Short(2));
        assert_eq!(last, Magnitude::Beyond);
        // The largest of all: (2^1024 - 1) has known factors.
        let most = Magnitude::from_long_parts(0, &[u64::MAX; 16]).unwrap();
        assert_eq!(most.leading(), Some((u64::MAX, 960)));
    }

    #[test]
    fn lost_digits_end_in_the_same_form_in_every_order() {
        let parts = [
            Magnitude::lost(),
            Magnitude::lost(),
            Magnitude::lost(),
            of(&[u64::MAX; 3]),
            of(&[3; 100]),
            of(&[1 << 40; 4]),
            of(&[7; 5]),
        ];
        // Every subset, forwards, backwards, and as a tree.
        for chosen in 0..1 << parts.len() {
            let some = || parts.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
            let fold = |mut a: Magnitude, (_, b): (usize, &Magnitude)| {
                a.merge(b);
                a
            };
            let forwards = some().fold(Magnitude::ONE, fold);
            assert_eq!(some().rev().fold(Magnitude::ONE, fold), forwards);
            let [mut even, odd] =
                [0, 1].map(|r| some().filter(|(i, _)| i % 2 == r).fold(Magnitude::ONE, fold));
            even.merge(&odd);
            assert_eq!(even, forwards);
        }
        // Seven are 2^896 at least, eight are 2^1024.
        let mut lost = Magnitude::ONE;
        for _ in 0..7 {
            lost.merge(&Magnitude::lost());
        }
        assert!(lost.lacks_digits() && lost.leading().is_none());
        lost.merge(&Magnitude::lost());
        assert_eq!(lost, Magnitude::Beyond);
    }

    #[test]
    fn each_magnitude_has_one_form() {
        let reads = |lost, words: &[u64]| Magnitude::from_long_parts(lost, words).is_some();
        assert!(reads(0, &[0, 0, 1]) && reads(1, &[1]) && reads(7, &[5, 1]));
        assert!(!reads(0, &[0, 1]) && !reads(0, &[]) && !reads(1, &[]));
        assert!(!reads(0, &[1, 1, 1, 0]) && !reads(0, &[1; 17]) && !reads(7, &[1, 1, 1]));
        assert!(!reads(8, &[1]) && !reads(255, &[1]));
    }
}
