//! Partials of the ranks of an MPI program, put together.
//!
//! [`World::open`] loads the MPI library that is found at run time, Open MPI's, MPICH's or one
//! with the interface of MPI 5, and joins the other ranks. States that add up travel as integers
//! that the library sums, others as bytes along a tree. `mpirun -n 4 program` gives the bits of a
//! single run:
//!
//! ```
//! # fn alone() -> Result<(), Box<dyn std::error::Error>> {
//! use warpfold::mpi::{World, all_reduce};
//! use warpfold::{Op, Reduction, Rules};
//!
//! let world = World::open()?;
//! let data: Vec<f64> = (0..1000).map(|i| f64::from(i) * 0.1).collect();
//! let cut = |rank| data.len() * rank / world.size();
//! let (start, end) = (cut(world.rank()), cut(world.rank() + 1));
//! let share = Reduction::new([Op::Sum, Op::ArgMax]).partial(&data[start..end], start as u64)?;
//! println!("{:?}", all_reduce(&world, &share)?.finish(&Rules::default())?);
//! world.close()?;
//! # Ok(())
//! # }
//! ```

use crate::{Error as Wrong, GroupPartial, Partial};
pub use warpfold_mpi::{Error, How, Result, World};

/// What ranks can put together: [`Partial`] and [`GroupPartial`].
pub trait Together: sealed::Sealed + Sized {}

impl Together for Partial {}
impl Together for GroupPartial {}

mod sealed {
    use crate::Result;

    pub trait Sealed: Clone {
        /// What is asked, in words that all ranks have in common.
        fn question(&self) -> String;
        /// The integers that add up, and what else the ranks must have in common for that.
        fn vector(&self) -> Option<(Vec<i64>, String)>;
        fn with_vector(&self, vector: &[i64]) -> Result<Self>;
        fn bytes(&self) -> Result<Vec<u8>>;
        fn of_bytes(bytes: &[u8]) -> Result<Self>;
        fn take_in(&mut self, other: &Self) -> Result<()>;
    }
}

impl sealed::Sealed for Partial {
    fn question(&self) -> String {
        let ops: Vec<&str> = self.ops().map(crate::Op::name).collect();
        let (ops, shape) = (ops.join(","), self.shape());
        format!("{ops} in the shape {shape:?}, in warpfold {}", env!("CARGO_PKG_VERSION"))
    }

    fn vector(&self) -> Option<(Vec<i64>, String)> {
        Some((self.to_vector()?, format!("{} {:?}", self.dtype(), self.unit())))
    }

    fn with_vector(&self, vector: &[i64]) -> crate::Result<Partial> {
        self.from_vector(vector)
    }

    fn bytes(&self) -> crate::Result<Vec<u8>> {
        Ok(self.to_bytes())
    }

    fn of_bytes(bytes: &[u8]) -> crate::Result<Partial> {
        Partial::from_bytes(bytes)
    }

    fn take_in(&mut self, other: &Partial) -> crate::Result<()> {
        self.merge(other)
    }
}

impl sealed::Sealed for GroupPartial {
    fn question(&self) -> String {
        let ops: Vec<&str> = self.ops().map(crate::Op::name).collect();
        let (ops, order, names) = (ops.join(","), self.order(), self.key_names().join(","));
        let omit = if self.omits_missing() { " of rows with keys" } else { "" };
        let version = env!("CARGO_PKG_VERSION");
        format!("{ops} by {names}{omit} in {order} order, in warpfold {version}")
    }

    fn vector(&self) -> Option<(Vec<i64>, String)> {
        None
    }

    fn with_vector(&self, _: &[i64]) -> crate::Result<GroupPartial> {
        Ok(self.clone())
    }

    fn bytes(&self) -> crate::Result<Vec<u8>> {
        self.try_to_bytes()
    }

    fn of_bytes(bytes: &[u8]) -> crate::Result<GroupPartial> {
        GroupPartial::from_bytes(bytes)
    }

    fn take_in(&mut self, other: &GroupPartial) -> crate::Result<()> {
        // A text without rows does not know of what type its columns are.
        match (self.rows(), other.rows()) {
            (_, 0) => {}
            (0, _) => *self = other.clone(),
            _ => self.merge(other)?,
        }
        Ok(())
    }
}

/// The merged partial of all ranks, on every rank. All ranks call it; each partial stays as it is.
///
/// # Errors
/// Ranks that ask different questions, before anything is reduced; partials that do not merge:
/// the same error on all ranks. What the MPI library says.
pub fn all_reduce<T: Together>(world: &World, partial: &T) -> Result<T> {
    match together(world, partial)? {
        Merged::Everywhere(merged) => Ok(merged),
        Merged::AtRoot(merged) => {
            let told = match merged {
                None => Vec::new(),
                Some(Ok(merged)) => [&[0], &*merged.bytes().map_err(wrong)?].concat(),
                Some(Err(error)) => {
                    let hint = error.hint().unwrap_or_default();
                    [&[1], format!("{error}\0{hint}").as_bytes()].concat()
                }
            };
            let told = world.broadcast(told, 0)?;
            match told.split_first() {
                Some((0, bytes)) => T::of_bytes(bytes).map_err(wrong),
                Some((_, text)) => {
                    let text = String::from_utf8_lossy(text);
                    let (what, hint) = text.split_once('\0').unwrap_or((&text, ""));
                    Err(Error::new(what, hint))
                }
                None => Err(Error::new("rank 0 has sent nothing", "")),
            }
        }
    }
}

/// The merged partial of all ranks, on rank 0 alone. All ranks call it.
///
/// # Errors
/// Those of [`all_reduce`]; that partials do not merge is told to rank 0 alone.
pub fn reduce<T: Together>(world: &World, partial: &T) -> Result<Option<T>> {
    match together(world, partial)? {
        Merged::Everywhere(merged) => Ok(Some(merged).filter(|_| world.rank() == 0)),
        Merged::AtRoot(merged) => merged.transpose(),
    }
}

enum Merged<T> {
    Everywhere(T),
    AtRoot(Option<Result<T>>),
}

fn together<T: Together>(world: &World, partial: &T) -> Result<Merged<T>> {
    let vector = partial.vector().filter(|_| world.size() <= Partial::MOST_VECTORS);
    let detail = vector.as_ref().map(|(_, of)| of.as_bytes());
    let alike = world.agree(&partial.question(), detail)?;
    match vector {
        Some((mut vector, _)) if alike => {
            world.all_reduce(&mut vector, How::Sum)?;
            Ok(Merged::Everywhere(partial.with_vector(&vector).map_err(wrong)?))
        }
        _ => Ok(Merged::AtRoot(up_the_tree(world, partial)?)),
    }
}

/// Merges along a binomial tree, whose root is rank 0.
fn up_the_tree<T: Together>(world: &World, partial: &T) -> Result<Option<Result<T>>> {
    let mut unmerged = vec![partial.clone()];
    let (rank, mut step) = (world.rank(), 1);
    while step < world.size() {
        if rank & step != 0 {
            world.send(&packed(&unmerged)?, rank - step)?;
            return Ok(None);
        }
        if rank + step < world.size() {
            for other in unpacked(&world.receive(rank + step)?)? {
                take_in(&mut unmerged, other);
            }
        }
        step *= 2;
    }
    let mut merged = unmerged.swap_remove(0);
    let rest = unmerged.iter().try_for_each(|other| merged.take_in(other));
    Ok(Some(rest.map(|()| merged).map_err(wrong)))
}

/// Merges a partial with the first that takes it. Integers of one text may merge with those of
/// another only after a third has shown that they are decimals: what does not merge yet waits,
/// and what never does is rank 0's error.
fn take_in<T: Together>(unmerged: &mut Vec<T>, other: T) {
    let taken = unmerged.iter_mut().position(|one| one.take_in(&other).is_ok());
    match taken {
        None => unmerged.push(other),
        Some(_) if unmerged.len() == 1 => {}
        Some(place) => {
            let changed = unmerged.swap_remove(place);
            take_in(unmerged, changed);
        }
    }
}

/// Each partial's bytes, behind their number.
fn packed<T: Together>(partials: &[T]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for partial in partials {
        let bytes = partial.bytes().map_err(wrong)?;
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(&bytes);
    }
    Ok(out)
}

fn unpacked<T: Together>(mut bytes: &[u8]) -> Result<Vec<T>> {
    let mut partials = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk() {
        let own = usize::try_from(u64::from_le_bytes(*len)).ok();
        let own = own.and_then(|len| rest.split_at_checked(len));
        let (own, rest) = own.ok_or_else(|| Error::new("a message ends within a state", ""))?;
        partials.push(T::of_bytes(own).map_err(wrong)?);
        bytes = rest;
    }
    Ok(partials)
}

fn wrong(error: Wrong) -> Error {
    Error::new(error.to_string(), error.hint().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{packed, take_in, unpacked};
    use crate::{Op, Partial, Reduction, Rules};

    fn of(data: &[f64], start: u64) -> Partial {
        Reduction::of(Op::ArgMax).partial(data, start).unwrap()
    }

    #[test]
    fn messages_hold_what_waits() {
        let parts = [of(&[1.0, 2.0], 0), of(&[3.0], 2)];
        let bytes = packed(&parts).unwrap();
        assert_eq!(unpacked::<Partial>(&bytes).unwrap(), parts);
        assert!(unpacked::<Partial>(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn what_does_not_merge_waits() {
        let mut unmerged = vec![of(&[1.0, 2.0], 0)];
        take_in(&mut unmerged, Reduction::of(Op::ArgMax).partial(&[1.0f32], 2).unwrap());
        assert_eq!(unmerged.len(), 2);
        take_in(&mut unmerged, of(&[9.0], 2));
        assert_eq!(unmerged.len(), 2);
        let answers = unmerged.iter().map(|part| part.finish(&Rules::default()).unwrap());
        let longest = answers.filter_map(|answer| answer.number::<u64>(Op::ArgMax)).max();
        assert_eq!(longest, Some(2));
    }
}
