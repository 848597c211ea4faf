//! Codes in the order of their keys.

use std::sync::{Mutex, PoisonError};
use warpfold_cpu::groups::TextNumbering;
use warpfold_threads::{Pieces, Threads};

/// Fewer are sorted by one thread.
const LEAST: usize = 1 << 18;
/// Ranges that threads share.
const RANGES: usize = 64;

/// The codes in the order of their words, equal words in that of their codes.
pub(super) fn by_words(pairs: Vec<(u64, u32)>, threads: Threads) -> Vec<u32> {
    in_order(pairs, threads).into_iter().map(|(_, code)| code).collect()
}

/// Both numbers of a pair as one, which takes one comparison without a branch.
fn as_one(&(word, code): &(u64, u32)) -> u128 {
    u128::from(word) << u32::BITS | u128::from(code)
}

/// Sorts pairs: ranges of words side by side.
fn in_order(mut pairs: Vec<(u64, u32)>, threads: Threads) -> Vec<(u64, u32)> {
    if pairs.len() < LEAST {
        pairs.sort_unstable_by_key(as_one);
        return pairs;
    }
    let step = pairs.len() / (64 * RANGES);
    let mut sample: Vec<u64> = pairs.iter().step_by(step).map(|&(word, _)| word).collect();
    sample.sort_unstable();
    let splitters: Vec<u64> = (1..RANGES).map(|i| sample[i * sample.len() / RANGES]).collect();
    let range = |word: u64| splitters.partition_point(|&splitter| splitter <= word);
    let ranges: Vec<u8> = pairs.iter().map(|&(word, _)| range(word) as u8).collect();
    // Each range's pairs together.
    let mut next = [0; RANGES + 1];
    ranges.iter().for_each(|&range| next[usize::from(range) + 1] += 1);
    (0..RANGES).for_each(|range| next[range + 1] += next[range]);
    let mut sorted = vec![(0, 0); pairs.len()];
    for (&pair, &range) in pairs.iter().zip(&ranges) {
        let next = &mut next[usize::from(range)];
        sorted[*next] = pair;
        *next += 1;
    }
    drop((pairs, ranges));
    // Each has come to where the next one begins.
    let (mut parts, mut rest, mut from) = (Vec::new(), &mut sorted[..], 0);
    for &end in &next[..RANGES] {
        let (part, others) = rest.split_at_mut(end - from);
        parts.push(Mutex::new(part));
        (rest, from) = (others, end);
    }
    let pieces = Pieces::new(RANGES);
    threads.run(RANGES, || {
        while let Some(piece) = pieces.take() {
            let mut part = parts[piece].lock().unwrap_or_else(PoisonError::into_inner);
            part.sort_unstable_by_key(as_one);
        }
    });
    sorted
}

/// Bytes of a text that are compared at once.
const WORD: usize = 8;

/// Sorts the codes of distinct texts by their bytes: by a word of those that follow what all of
/// them begin with; and codes of equal words again, by what follows.
pub(super) fn by_bytes(texts: &TextNumbering, codes: &mut [u32], threads: Threads) {
    let mut runs = vec![(0..codes.len(), 0)];
    while let Some((run, begin)) = runs.pop() {
        let (first, codes) = (run.start, &mut codes[run]);
        let Some((&one, others)) = codes.split_first() else { continue };
        let shared = &texts.text(one)[begin..];
        let both = |shared: usize, &code: &u32| {
            let pairs =
                texts.text(one)[begin..begin + shared].iter().zip(&texts.text(code)[begin..]);
            pairs.take_while(|(left, right)| left == right).count()
        };
        let begin = begin + others.iter().fold(shared.len(), both);
        let word = |&code: &u32| (first_word(&texts.text(code)[begin..]), code);
        let sorted = in_order(codes.iter().map(word).collect(), threads);
        codes.iter_mut().zip(&sorted).for_each(|(code, pair)| *code = pair.1);
        let mut from = first;
        for equal in sorted.chunk_by(|left, right| left.0 == right.0) {
            let run = from..from + equal.len();
            from = run.end;
            if equal.len() > 1 {
                // Those that end within the word are what the longer ones begin with.
                let end = begin + WORD;
                let len = |code: &u32| texts.text(*code).len().min(end + 1);
                let equal = &mut codes[run.start - first..run.end - first];
                equal.sort_unstable_by_key(len);
                let ended = equal.partition_point(|code| len(code) <= end);
                runs.push((run.start + ended..run.end, end));
            }
        }
    }
}

/// The first bytes of a text, the first one highest; zeros where it ends.
fn first_word(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(word) => u64::from_be_bytes(*word),
        None => {
            let word = text.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
            // Twice, as nothing may be there at all.
            word << (4 * (WORD - text.len())) << (4 * (WORD - text.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_words_are_in_their_order() {
        let families: [fn(u64) -> u64; 4] =
            [|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15), |i| i / 3, |_| 7, |i| u64::MAX - i % 5];
        for family in families {
            let pairs: Vec<(u64, u32)> =
                (0..LEAST as u32 + 9).map(|i| (family(i.into()), i)).collect();
            let mut sorted = pairs.clone();
            sorted.sort_unstable();
            let codes: Vec<u32> = sorted.into_iter().map(|(_, code)| code).collect();
            assert_eq!(by_words(pairs, Threads::Exactly(3)), codes);
        }
    }

    /// Texts that share what they begin with, end within a word, or differ in zeros alone.
    #[test]
    fn codes_of_texts_are_in_their_order() {
        let mut texts = TextNumbering::new();
        for i in (0..400).rev() {
            for text in [
                "a".repeat(i),
                format!("{}{i}", "a".repeat(i / 9)),
                "\0".repeat(i % 40),
                format!("shared and long {}", i * 7919 % 400),
                format!("\u{10ffff}{}", "\0".repeat(i % 9)),
            ] {
                texts.number(text.as_bytes()).unwrap();
            }
        }
        let mut codes: Vec<u32> = (0..texts.len() as u32).collect();
        by_bytes(&texts, &mut codes, Threads::Exactly(2));
        assert!(codes.is_sorted_by(|&left, &right| texts.text(left) < texts.text(right)));
        assert_eq!(codes.len(), texts.len());
    }
}
