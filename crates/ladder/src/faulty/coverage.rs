//! Where a sum goes wrong: how often each element is in it.
//!
//! A listing's answer is a sum of its elements, each of them some number of times. Arrays of zeros with a few other elements tell how often, and the
//! order of the threads does not depend on the elements: a race goes the same way each time.

use core::ops::RangeInclusive;

/// Elements that are in an answer this often, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Astray {
    elements: RangeInclusive<u32>,
    times: u32,
}

/// Elements that are told apart in one run: four bits for each.
const AT_ONCE: usize = 8;

/// Where a sum of `n` elements goes wrong, in sentences. `answer` runs the listing over an array, and gives nothing where it does not
/// finish.
pub(crate) fn astray<E>(
    n: u32,
    tile: u32,
    answer: &impl Fn(&[u32]) -> Result<Option<u32>, E>,
) -> Result<Vec<String>, E> {
    let Some(nothing) = answer(&vec![0; n as usize])? else { return Ok(Vec::new()) };
    let mut told = merge(&elements(n, tile, nothing, answer)?);
    if nothing != 0 {
        told.push(format!(
            "memory that is not the array's is added, too: {} of an array of zeros",
            nothing.cast_signed()
        ));
    }
    Ok(told)
}

/// The elements that are not in the answer exactly once. The answer of an array of zeros is subtracted.
fn elements<E>(
    n: u32,
    tile: u32,
    nothing: u32,
    answer: &impl Fn(&[u32]) -> Result<Option<u32>, E>,
) -> Result<Vec<Astray>, E> {
    let mut items = vec![0; n as usize];
    let mut found = Vec::new();
    for begin in (0..n).step_by(tile as usize) {
        let end = n.min(begin + tile);
        // Weights of which no few make up for each other.
        let weight = |i: u32| (i + 1).wrapping_mul(0x9e37_79b1);
        (begin..end).for_each(|i| items[i as usize] = weight(i));
        let sum = answer(&items)?.map(|sum| sum.wrapping_sub(nothing));
        items.fill(0);
        let all = (begin..end).fold(0, |all: u32, i| all.wrapping_add(weight(i)));
        // A tile without faults, or one that is left out as a whole, needs no closer look.
        match sum {
            None => return Ok(Vec::new()),
            Some(0) => found.push(Astray { elements: begin + 1..=end, times: 0 }),
            Some(sum) if sum == all => {}
            Some(_) => {
                for part in (begin..end).step_by(AT_ONCE) {
                    let several = part..end.min(part + AT_ONCE as u32);
                    several.clone().for_each(|i| items[i as usize] = 1 << (4 * (i - part)));
                    let Some(sum) = answer(&items)? else { return Ok(Vec::new()) };
                    items.fill(0);
                    let sum = sum.wrapping_sub(nothing);
                    let times = |i: u32| sum >> (4 * (i - part)) & 15;
                    let wrong = several.filter(|&i| times(i) != 1);
                    found
                        .extend(wrong.map(|i| Astray { elements: i + 1..=i + 1, times: times(i) }));
                }
            }
        }
    }
    Ok(found)
}

/// The most sentences.
const MOST: usize = 4;

/// The elements in sentences: neighbours that are in the answer equally often are told together.
fn merge(found: &[Astray]) -> Vec<String> {
    let mut joined: Vec<Astray> = Vec::new();
    for next in found {
        match joined.last_mut() {
            Some(last)
                if last.times == next.times
                    && last.elements.end() + 1 == *next.elements.start() =>
            {
                last.elements = *last.elements.start()..=*next.elements.end();
            }
            _ => joined.push(next.clone()),
        }
    }
    let mut told: Vec<String> = joined.iter().take(MOST).map(sentence).collect();
    if joined.len() > MOST {
        let rest = joined[MOST..].iter().map(|astray| astray.elements.clone().count());
        told.push(format!(
            "and {} more elements are left out or added too often",
            rest.sum::<usize>()
        ));
    }
    told
}

fn sentence(Astray { elements, times }: &Astray) -> String {
    let (first, last) = (elements.start(), elements.end());
    let (what, are) = match first == last {
        true => (format!("element {first}"), "is"),
        false => (format!("elements {first} to {last}"), "are"),
    };
    match times {
        0 => format!("{what} {are} left out"),
        2 => format!("{what} {are} added twice"),
        times => format!("{what} {are} added {times} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(n: u32, tile: u32, beside: u32, weight: impl Fn(u32) -> u32) -> Vec<String> {
        let sum = |items: &[u32]| {
            let add = |a: u32, (i, x): (u32, &u32)| a.wrapping_add(weight(i).wrapping_mul(*x));
            Ok::<_, ()>(Some((0..).zip(items).fold(beside, add)))
        };
        astray(n, tile, &sum).unwrap()
    }

    #[test]
    fn elements_are_told_from_each_other() {
        assert!(told(100, 16, 0, |_| 1).is_empty());
        let beside = told(100, 16, 7, |i| u32::from(i != 99));
        assert_eq!(beside.len(), 2, "{beside:?}");
        assert!(
            beside[0] == "element 100 is left out" && beside[1].contains("too: 7"),
            "{beside:?}"
        );
        assert_eq!(told(100, 16, 0, |i| u32::from(i < 64)), ["elements 65 to 100 are left out"]);
        let twice = told(40, 16, 0, |i| if i == 17 { 2 } else { u32::from(i != 39) });
        assert_eq!(twice, ["element 18 is added twice", "element 40 is left out"]);
        // As many too often as are left out.
        let many = told(64, 64, 0, |i| if i % 2 == 0 { 0 } else { 2 });
        assert_eq!(many.len(), MOST + 1);
        assert_eq!(many[1], "element 2 is added twice");
        assert_eq!(many[MOST], "and 60 more elements are left out or added too often");
    }

    #[test]
    fn what_does_not_finish_is_not_explained() {
        assert_eq!(astray(10, 5, &|_: &[u32]| Ok::<_, ()>(None)), Ok(Vec::new()));
        assert_eq!(astray(10, 5, &|_: &[u32]| Err("failed")), Err("failed"));
    }
}
