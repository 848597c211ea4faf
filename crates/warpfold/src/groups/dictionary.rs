//! The distinct keys of one column.

use super::answer::{KeyValues, Texts};
use super::column::Column;
use super::keys::{Items, KeyColumn, KeyType};
use super::sorting::{by_bytes, by_words};
use super::widened::Counted;
use crate::unit::Unit;
use core::ops::Range;
use warpfold_core::element::{Element, Key};
use warpfold_core::op::{Decimal, Numbers, Scalar};
use warpfold_core::{DType, Error, Result, with_element};
use warpfold_cpu::groups::{Numbering, OutOfMemory, TextNumbering, check_memory, hash, hash_text};
use warpfold_threads::Threads;

/// Distinct keys with their numbers, which are called codes.
#[derive(Clone, Debug)]
pub(super) enum Dictionary {
    Numbers {
        dtype: DType,
        unit: Option<Unit>,
        words: Numbering,
    },
    /// Decimals, some of them beyond 64 bits, as texts of 16 bytes in their order.
    Wide {
        unit: Option<Unit>,
        texts: TextNumbering,
    },
    Texts(TextNumbering),
}

/// Rows whose words are made at once.
const BLOCK: usize = 1024;

impl Dictionary {
    pub(super) fn new(key_type: KeyType) -> Dictionary {
        match key_type {
            KeyType::Number(dtype) => {
                Dictionary::Numbers { dtype, unit: None, words: Numbering::new() }
            }
            KeyType::Text => Dictionary::Texts(TextNumbering::new()),
        }
    }

    pub(super) fn key_type(&self) -> KeyType {
        match self {
            Dictionary::Numbers { dtype, .. } => KeyType::Number(*dtype),
            Dictionary::Wide { .. } => KeyType::Number(DType::I64),
            Dictionary::Texts(_) => KeyType::Text,
        }
    }

    /// What the keys count.
    pub(super) fn unit(&self) -> Option<&Unit> {
        match self {
            Dictionary::Numbers { unit, .. } | Dictionary::Wide { unit, .. } => unit.as_ref(),
            Dictionary::Texts(_) => None,
        }
    }

    /// Says what the keys count, if they are integers.
    pub(super) fn set_unit(&mut self, of_keys: Option<Unit>) {
        if let Dictionary::Numbers { unit, .. } = self {
            *unit = of_keys;
        }
    }

    /// The type of keys that are numbers.
    pub(super) fn counted(&self) -> Option<Counted> {
        match self {
            Dictionary::Numbers { dtype, unit, .. } => {
                Some(Counted { dtype: *dtype, unit: unit.clone() })
            }
            Dictionary::Wide { unit, .. } => {
                Some(Counted { dtype: DType::I64, unit: unit.clone() })
            }
            Dictionary::Texts(_) => None,
        }
    }

    /// The same keys by the same codes, as keys of another type.
    ///
    /// # Errors
    /// A key that the type does not have; no memory.
    pub(super) fn widen(&mut self, joined: &Counted) -> Result<()> {
        let Some(own) = self.counted() else { return Ok(()) };
        if let (Dictionary::Wide { unit, texts }, Some(widening)) =
            (&mut *self, own.widening(joined))
        {
            let mut wide = TextNumbering::new();
            for code in 0..texts.len() as u32 {
                if texts.is_missing(code) {
                    wide.missing()?;
                    continue;
                }
                let decimal = decimal_of(texts.text(code)).checked_mul(widening.factor().into());
                wide.number(&text_of(decimal.ok_or_else(|| own.beyond(joined))?))?;
            }
            *texts = wide;
            unit.clone_from(&joined.unit);
            return Ok(());
        }
        let Dictionary::Numbers { dtype, unit, words } = self else { return Ok(()) };
        if let Some(widening) = own.widening(joined) {
            let mut wide = Numbering::new();
            for (&word, code) in words.words().iter().zip(0..) {
                if words.is_missing(code) {
                    wide.missing()?;
                    continue;
                }
                let word = widening.bits(word).ok_or_else(|| own.beyond(joined))?;
                with_element!(joined.dtype, T => wide.number(canonical(<T as Element>::from_bits(word))))?;
            }
            *words = wide;
        }
        *dtype = joined.dtype;
        unit.clone_from(&joined.unit);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Dictionary::Numbers { words, .. } => words.len(),
            Dictionary::Texts(texts) | Dictionary::Wide { texts, .. } => texts.len(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Dictionary::Numbers { words, .. } => words.bytes(),
            Dictionary::Texts(texts) | Dictionary::Wide { texts, .. } => texts.memory(),
        }
    }

    pub(super) fn is_missing(&self, code: u32) -> bool {
        match self {
            Dictionary::Numbers { words, .. } => words.is_missing(code),
            Dictionary::Texts(texts) | Dictionary::Wide { texts, .. } => texts.is_missing(code),
        }
    }

    /// Forgets all codes from this one on.
    pub(super) fn truncate(&mut self, len: usize) {
        match self {
            Dictionary::Numbers { words, .. } => words.truncate(len),
            Dictionary::Texts(texts) | Dictionary::Wide { texts, .. } => texts.truncate(len),
        }
    }

    /// The code of no key.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn missing(&mut self) -> Result<u32, OutOfMemory> {
        match self {
            Dictionary::Numbers { words, .. } => words.missing(),
            Dictionary::Texts(texts) | Dictionary::Wide { texts, .. } => texts.missing(),
        }
    }

    /// The same keys by the same codes, as decimals that may be beyond 64 bits.
    ///
    /// # Errors
    /// No memory.
    fn make_wide(&mut self) -> Result<(), OutOfMemory> {
        let Dictionary::Numbers { unit, words, .. } = self else { return Ok(()) };
        let mut texts = TextNumbering::new();
        for (&word, code) in words.words().iter().zip(0..) {
            if words.is_missing(code) {
                texts.missing()?;
            } else {
                texts.number(&text_of(word.cast_signed().into()))?;
            }
        }
        *self = Dictionary::Wide { unit: unit.take(), texts };
        Ok(())
    }

    /// Whether some keys are beyond 64 bits.
    pub(super) fn is_wide(&self) -> bool {
        matches!(self, Dictionary::Wide { .. })
    }

    /// Appends the codes of rows of a column, which is of this type; for rows without a
    /// key `without`, if that is some, or else a code of their own.
    ///
    /// # Errors
    /// Those of [`Column::new`], and no memory.
    pub(super) fn encode(
        &mut self,
        keys: &KeyColumn<'_>,
        rows: Range<usize>,
        without: Option<u32>,
        codes: &mut Vec<u32>,
    ) -> Result<()> {
        let (wide, origin) = keys.wide;
        if !wide.is_empty() {
            self.make_wide()?;
        }
        match (self, &keys.items) {
            (Dictionary::Wide { texts, .. }, Items::Numbers(input)) => {
                let column = Column::new(input)?;
                let mut words = Vec::with_capacity(rows.len());
                read_words(&column, rows.clone(), &mut words);
                let first = wide.partition_point(|&(row, _)| row - origin < rows.start as u64);
                let mut wide = wide[first..].iter().peekable();
                for (row, &word) in rows.zip(&words) {
                    let beyond = wide.next_if(|&&(at, _)| at - origin == row as u64);
                    let decimal = match beyond {
                        Some(&(_, decimal)) => Some(decimal),
                        None => input.is_valid(row).then(|| word.cast_signed().into()),
                    };
                    codes.push(match (decimal, without) {
                        (Some(decimal), _) => texts.number(&text_of(decimal))?,
                        (None, Some(without)) => without,
                        (None, None) => texts.missing()?,
                    });
                }
            }
            (Dictionary::Numbers { words, .. }, Items::Numbers(input)) => {
                let column = Column::new(input)?;
                let gaps = input.missing() > 0;
                let mut block = Vec::with_capacity(BLOCK);
                for from in rows.clone().step_by(BLOCK) {
                    let rows = from..rows.end.min(from + BLOCK);
                    block.clear();
                    read_words(&column, rows.clone(), &mut block);
                    if !gaps {
                        let before = codes.len();
                        codes.resize(before + block.len(), 0);
                        words.number_all(&block, &mut codes[before..])?;
                        continue;
                    }
                    for (row, &word) in rows.zip(&block) {
                        codes.push(match (input.is_valid(row), without) {
                            (true, _) => words.number(word)?,
                            (false, Some(without)) => without,
                            (false, None) => words.missing()?,
                        });
                    }
                }
            }
            (Dictionary::Texts(texts), Items::Coded(coded)) => {
                // Each text is looked up where it is met first: it need not be met at all.
                const UNKNOWN: u32 = u32::MAX;
                let mut known = vec![UNKNOWN; coded.distinct()];
                let mut refused = Ok(());
                coded.for_each(rows, |code| {
                    let code = match (code, without) {
                        (Some(code), _) => match known[code as usize] {
                            UNKNOWN => texts
                                .number(coded.text(code))
                                .inspect(|&number| known[code as usize] = number),
                            known => Ok(known),
                        },
                        (None, Some(without)) => Ok(without),
                        (None, None) => texts.missing(),
                    };
                    codes.push(code.unwrap_or_else(|error| {
                        refused = Err(error);
                        0
                    }));
                });
                refused?;
            }
            (Dictionary::Texts(texts), _) => {
                let (mut block, mut numbers) = (Vec::with_capacity(BLOCK), Vec::new());
                for from in rows.clone().step_by(BLOCK) {
                    block.clear();
                    keys.for_each_text(from..rows.end.min(from + BLOCK), |text| block.push(text));
                    let there: Vec<&[u8]> = block.iter().flatten().copied().collect();
                    numbers.resize(there.len(), 0);
                    texts.number_all(&there, &mut numbers)?;
                    let mut numbers = numbers.iter().copied();
                    for text in &block {
                        codes.push(match (text.and_then(|_| numbers.next()), without) {
                            (Some(number), _) => number,
                            (None, Some(without)) => without,
                            (None, None) => texts.missing()?,
                        });
                    }
                }
            }
            // The caller has compared the types.
            (Dictionary::Numbers { .. } | Dictionary::Wide { .. }, _) => {}
        }
        Ok(())
    }

    /// The codes of words, or else of texts.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn number_all(
        &mut self,
        words: &[u64],
        texts: &[&[u8]],
        codes: &mut [u32],
    ) -> Result<(), OutOfMemory> {
        match self {
            Dictionary::Numbers { words: own, .. } => own.number_all(words, codes),
            Dictionary::Texts(own) => own.number_all(texts, codes),
            Dictionary::Wide { texts: own, .. } => {
                let codes = codes.iter_mut().zip(words);
                codes.into_iter().try_for_each(|(code, word)| {
                    *code = own.number(&text_of(word.cast_signed().into()))?;
                    Ok(())
                })
            }
        }
    }

    /// The hashes of all keys by their codes; zero for that of no key. Those of equal keys are
    /// equal but in a dictionary with decimals beyond 64 bits.
    pub(super) fn hashes(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len() as u32).map(|code| match self {
            _ if self.is_missing(code) => 0,
            Dictionary::Numbers { words, .. } => hash(words.words()[code as usize]),
            Dictionary::Texts(texts) => hash_text(texts.text(code)),
            Dictionary::Wide { texts, .. } => match i64::try_from(decimal_of(texts.text(code))) {
                Ok(number) => hash(number.cast_unsigned()),
                Err(_) => 0,
            },
        })
    }

    /// Adds the keys of another dictionary, none of which is here.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn append(&mut self, other: &Dictionary) -> Result<(), OutOfMemory> {
        match (&mut *self, other) {
            (Dictionary::Numbers { words, .. }, Dictionary::Numbers { words: theirs, .. }) => {
                words.append(theirs)
            }
            (Dictionary::Texts(texts), Dictionary::Texts(theirs)) => texts.append(theirs),
            _ => self.adopt(other, 0..other.len() as u32).map(drop),
        }
    }

    /// The codes that these of another dictionary have here, where they get one.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn adopt(
        &mut self,
        other: &Dictionary,
        codes: impl ExactSizeIterator<Item = u32>,
    ) -> Result<Vec<u32>, OutOfMemory> {
        check_memory(size_of::<u32>() * codes.len())?;
        if other.is_wide() {
            self.make_wide()?;
        }
        codes
            .map(|code| match (&mut *self, other) {
                _ if other.is_missing(code) => self.missing(),
                (Dictionary::Numbers { words, .. }, Dictionary::Numbers { words: theirs, .. }) => {
                    words.number(theirs.words()[code as usize])
                }
                (Dictionary::Texts(texts), Dictionary::Texts(theirs))
                | (Dictionary::Wide { texts, .. }, Dictionary::Wide { texts: theirs, .. }) => {
                    texts.number(theirs.text(code))
                }
                (Dictionary::Wide { texts, .. }, Dictionary::Numbers { words, .. }) => {
                    texts.number(&text_of(words.words()[code as usize].cast_signed().into()))
                }
                // The caller has compared the types.
                _ => Ok(0),
            })
            .collect()
    }

    /// The code of a number's word, or of a text.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn insert_word(&mut self, word: u64) -> Result<Option<u32>, OutOfMemory> {
        match self {
            Dictionary::Numbers { dtype, words, .. } => {
                let canonical = with_element!(*dtype, T => is_canonical::<T>(word));
                canonical.then(|| words.number(word)).transpose()
            }
            Dictionary::Wide { texts, .. } => {
                texts.number(&text_of(word.cast_signed().into())).map(Some)
            }
            Dictionary::Texts(_) => Ok(None),
        }
    }

    /// The code of a decimal that is beyond 64 bits.
    pub(super) fn insert_wide(&mut self, text: &[u8]) -> Result<Option<u32>, OutOfMemory> {
        let is_decimal = self.unit().is_some_and(Unit::is_number);
        if !is_decimal || text.len() != 16 || i64::try_from(decimal_of(text)).is_ok() {
            return Ok(None);
        }
        self.make_wide()?;
        match self {
            Dictionary::Wide { texts, .. } => texts.number(text).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn insert_text(&mut self, text: &[u8]) -> Result<Option<u32>, OutOfMemory> {
        match self {
            Dictionary::Texts(texts) => texts.number(text).map(Some),
            Dictionary::Numbers { .. } | Dictionary::Wide { .. } => Ok(None),
        }
    }

    pub(super) fn word(&self, code: u32) -> Option<u64> {
        match self {
            Dictionary::Numbers { words, .. } => words.words().get(code as usize).copied(),
            Dictionary::Wide { texts, .. } => {
                i64::try_from(decimal_of(texts.text(code))).ok().map(i64::cast_unsigned)
            }
            Dictionary::Texts(_) => None,
        }
    }

    pub(super) fn text(&self, code: u32) -> Option<&[u8]> {
        match self {
            Dictionary::Texts(texts) | Dictionary::Wide { texts, .. } => Some(texts.text(code)),
            Dictionary::Numbers { .. } => None,
        }
    }

    /// All codes, in the order of their keys; that of no key comes last.
    pub(super) fn sorted(&self, threads: Threads) -> Vec<u32> {
        let there = || (0..self.len() as u32).filter(|&code| !self.is_missing(code));
        let mut codes: Vec<u32> = match self {
            Dictionary::Numbers { dtype, words, .. } => {
                let words = words.words();
                let keys = with_element!(*dtype, T => {
                    there().map(|code| (order::<T>(words[code as usize]), code)).collect()
                });
                by_words(keys, threads)
            }
            Dictionary::Wide { texts, .. } => {
                let mut codes: Vec<u32> = there().collect();
                by_bytes(texts, &mut codes, threads);
                codes
            }
            Dictionary::Texts(texts) => {
                let (mut numbers, mut others) = (Vec::new(), Vec::new());
                for code in there() {
                    match whole(texts.text(code)) {
                        Some(number) => numbers.push((order::<i64>(number.cast_unsigned()), code)),
                        None => others.push(code),
                    }
                }
                by_bytes(texts, &mut others, threads);
                let mut codes = by_words(numbers, threads);
                codes.append(&mut others);
                codes
            }
        };
        codes.extend((codes.len() < self.len()).then(|| self.missing_code()).flatten());
        codes
    }

    fn missing_code(&self) -> Option<u32> {
        (0..self.len() as u32).find(|&code| self.is_missing(code))
    }

    /// The keys of these codes.
    pub(super) fn values(&self, codes: impl ExactSizeIterator<Item = u32> + Clone) -> KeyValues {
        let missing = codes.clone().enumerate().filter(|&(_, code)| self.is_missing(code));
        let missing = missing.map(|(place, _)| place).collect();
        match self {
            Dictionary::Numbers { dtype, unit, words } => {
                let (words, mut numbers) = (words.words(), Numbers::zeros(*dtype, codes.len()));
                macro_rules! copy {
                    ($word:ty) => {{
                        let to: &mut [$word] = bytemuck::cast_slice_mut(numbers.bytes_mut());
                        to.iter_mut()
                            .zip(codes)
                            .for_each(|(to, code)| *to = words[code as usize] as $word)
                    }};
                }
                match dtype.size() {
                    1 => copy!(u8),
                    2 => copy!(u16),
                    4 => copy!(u32),
                    _ => copy!(u64),
                }
                KeyValues::of_numbers(numbers, unit.clone(), missing)
            }
            Dictionary::Wide { unit, texts } => {
                let digits = match unit {
                    Some(Unit::Decimal(digits)) => *digits,
                    _ => 0,
                };
                let key = |code| match self.is_missing(code) {
                    true => Decimal::of(0, digits),
                    false => Decimal::of(decimal_of(texts.text(code)), digits),
                };
                let numbers = Numbers::of_decimals(codes.map(key).collect());
                KeyValues::of_numbers(numbers, unit.clone(), missing)
            }
            Dictionary::Texts(texts) => {
                let (bytes, ends) = texts.copied(codes);
                KeyValues::of_texts(Texts { bytes, ends }, missing)
            }
        }
    }

    /// A key as people read it.
    pub(super) fn show(&self, code: u32) -> String {
        match self {
            _ if self.is_missing(code) => "missing".into(),
            Dictionary::Numbers { dtype, unit, words } => {
                shown(Scalar::from_bits(*dtype, words.words()[code as usize]), unit.as_ref())
            }
            Dictionary::Wide { unit, texts } => {
                let decimal = decimal_of(texts.text(code));
                unit.as_ref().map_or_else(|| decimal.to_string(), |unit| unit.show(decimal))
            }
            Dictionary::Texts(texts) => {
                format!("{:?}", String::from_utf8_lossy(texts.text(code)))
            }
        }
    }
}

/// A decimal as a text; the order of such texts is that of the decimals.
fn text_of(decimal: i128) -> [u8; 16] {
    (decimal ^ i128::MIN).to_be_bytes()
}

/// The decimal of such a text.
fn decimal_of(text: &[u8]) -> i128 {
    text.try_into().map_or(0, |text| i128::from_be_bytes(text) ^ i128::MIN)
}

/// A number as what it counts.
pub(super) fn shown(number: Scalar, unit: Option<&Unit>) -> String {
    match (number, unit) {
        (Scalar::Int(count, _), Some(unit)) => unit.show(count),
        (number, _) => number.to_string(),
    }
}

/// The whole number that a text is, written as short as can be.
fn whole(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let short = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if short { core::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// The bits of a key, the same for equal keys.
#[inline(always)]
pub(super) fn canonical<T: Element>(x: T) -> u64 {
    if !T::DTYPE.is_float() {
        return x.key().to_bits64() & (u64::MAX >> (64 - 8 * size_of::<T>()));
    }
    if x.is_nan() {
        return nan_bits(T::DTYPE);
    }
    let bits = x.bits();
    let sign = 1u64 << (8 * size_of::<T>() - 1);
    if bits == sign { 0 } else { bits }
}

/// Whether a word is one that a key has.
fn is_canonical<T: Element>(word: u64) -> bool {
    let x = T::from_bits(word);
    x.bits() == word && canonical(x) == word
}

fn nan_bits(dtype: DType) -> u64 {
    match dtype {
        DType::F16 => 0x7e00,
        DType::BF16 => 0x7fc0,
        DType::F32 => 0x7fc0_0000,
        _ => 0x7ff8_0000_0000_0000,
    }
}

/// A word whose order is the keys' order: NaN comes after all numbers.
pub(super) fn order<T: Element>(word: u64) -> u64 {
    let key = T::from_bits(word).key().to_bits64();
    let signed = T::DTYPE.is_float() || T::DTYPE.is_signed_int();
    if signed { key ^ 1 << 63 } else { key }
}

/// Appends the words of rows of a column.
pub(super) fn read_words(column: &Column<'_>, rows: Range<usize>, words: &mut Vec<u64>) {
    let mut buffer = Vec::new();
    with_element!(column.dtype(), T => {
        words.extend(column.typed::<T>(rows, &mut buffer).iter().map(|&x| canonical(x)));
    });
}

/// The error that two columns of keys are of different types.
pub(super) fn mismatch(left: KeyType, right: KeyType) -> Error {
    Error::StateMismatch { what: "key type", left: left.to_string(), right: right.to_string() }
}
