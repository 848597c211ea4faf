//! An opcode and the suffixes that have not been understood yet.

use super::instruction::Fault;
use crate::ir::{Order, Rounding, Scope, Space, Type};

/// An instruction's name, cut at its dots. Decoders take the suffixes they know; what is left is not supported.
#[derive(Clone)]
pub(super) struct Opcode<'a> {
    /// The first part: `ld`.
    pub(super) name: &'a str,
    parts: Vec<&'a str>,
}

/// No instruction has more suffixes.
const MOST_PARTS: usize = 16;

impl<'a> Opcode<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, Fault> {
        let mut parts = text.split('.');
        let name = parts.next().unwrap_or_default();
        let parts: Vec<_> = parts.take(MOST_PARTS + 1).collect();
        if parts.len() > MOST_PARTS {
            return Err(Fault::unsupported("it has too many suffixes"));
        }
        Ok(Opcode { name, parts })
    }

    /// Whether it is the first one left.
    pub(super) fn begins_with(&self, suffix: &str) -> bool {
        self.parts.first() == Some(&suffix)
    }

    /// Whether the suffix is there.
    pub(super) fn has(&self, suffix: &str) -> bool {
        self.parts.contains(&suffix)
    }

    /// The first suffix, which must be one of these types.
    pub(super) fn first_type(&mut self, allowed: &[Type]) -> Result<Type, Fault> {
        let found = self.parts.first().and_then(|part| Type::from_name(part));
        match found.filter(|ty| allowed.contains(ty)) {
            Some(ty) => {
                self.parts.remove(0);
                Ok(ty)
            }
            None => Err(Fault::unsupported("a type is missing, or is not one of these")),
        }
    }

    /// Whether the suffix is there; it is understood now.
    pub(super) fn take(&mut self, suffix: &str) -> bool {
        let found = self.parts.iter().position(|&part| part == suffix);
        found.map(|at| self.parts.remove(at)).is_some()
    }

    /// The meaning of the first suffix that the table has.
    pub(super) fn take_one<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        // Loops: there are as many tables as types, and closures would be compiled for each.
        for at in 0..self.parts.len() {
            for &(name, meaning) in table {
                if name == self.parts[at] {
                    self.parts.remove(at);
                    return Some(meaning);
                }
            }
        }
        None
    }

    /// As [`take_one`](Self::take_one), where one of them must be there.
    pub(super) fn expect<T: Copy>(&mut self, table: &[(&str, T)]) -> Result<T, Fault> {
        if let Some(meaning) = self.take_one(table) {
            return Ok(meaning);
        }
        let mut names = Vec::new();
        for &(name, _) in table {
            names.push(name);
        }
        Err(none_of(&names))
    }

    /// The first type among the suffixes.
    pub(super) fn optional_type(&mut self) -> Option<Type> {
        let (at, ty) = self
            .parts
            .iter()
            .enumerate()
            .find_map(|(at, part)| Some((at, Type::from_name(part)?)))?;
        self.parts.remove(at);
        Some(ty)
    }

    /// The first type among the suffixes, which must be one of these.
    pub(super) fn ty(&mut self, allowed: &[Type]) -> Result<Type, Fault> {
        let ty = self.optional_type().ok_or_else(|| Fault::unsupported("a type is missing"))?;
        if allowed.contains(&ty) {
            return Ok(ty);
        }
        Err(Fault::unsupported(format!("{ty} is not a type of `{}`", self.name)))
    }

    /// `.rn`, `.rz`, `.rm` or `.rp`.
    pub(super) fn rounding(&mut self) -> Option<Rounding> {
        self.take_one(&[
            ("rn", Rounding::Nearest),
            ("rz", Rounding::Zero),
            ("rm", Rounding::Down),
            ("rp", Rounding::Up),
        ])
    }

    /// The first state space named; generic where none is.
    pub(super) fn space(&mut self) -> Space {
        self.take_one(&[
            ("global", Space::Global),
            ("shared", Space::Shared),
            ("shared::cta", Space::Shared),
            ("shared::cluster", Space::SharedCluster),
            ("local", Space::Local),
            ("const", Space::Const),
            ("param", Space::Param),
            ("param::entry", Space::Param),
            ("param::func", Space::Param),
        ])
        .unwrap_or(Space::Generic)
    }

    /// `.cta`, `.cluster`, `.gpu` or `.sys`.
    pub(super) fn scope(&mut self) -> Option<Scope> {
        self.take_one(&[
            ("cta", Scope::Cta),
            ("cluster", Scope::Cluster),
            ("gpu", Scope::Gpu),
            ("sys", Scope::Sys),
        ])
    }

    /// The order that an access names.
    pub(super) fn order(&mut self) -> Option<Order> {
        self.take_one(&[
            ("weak", Order::Weak),
            ("volatile", Order::Volatile),
            ("relaxed", Order::Relaxed),
            ("mmio", Order::Relaxed),
            ("acquire", Order::Acquire),
            ("release", Order::Release),
            ("acq_rel", Order::AcqRel),
        ])
    }

    /// Drops what steers caches and changes no result. Says whether a cache policy follows the operands.
    pub(super) fn drop_cache_hints(&mut self) -> bool {
        const OPERATORS: [&str; 7] = ["ca", "cg", "cs", "lu", "cv", "wb", "wt"];
        let policy = self.take("L2::cache_hint");
        self.parts.retain(|part| {
            !(OPERATORS.contains(part) || part.starts_with("L1::") || part.starts_with("L2::"))
        });
        policy
    }

    /// Whether a suffix is left that is no type, space, order, scope or rounding; if so, only such ones are left.
    pub(super) fn has_unknown_suffix(&mut self) -> bool {
        let known = |part: &str| {
            let mut alone = Opcode { name: self.name, parts: vec![part] };
            alone.drop_cache_hints();
            alone.parts.is_empty()
                || alone.optional_type().is_some()
                || alone.space() != Space::Generic
                || alone.order().is_some()
                || alone.scope().is_some()
                || alone.rounding().is_some()
                || matches!(
                    part,
                    "ftz" | "sat" | "lo" | "hi" | "wide" | "lt" | "nan" | "v2" | "v4" | "v8"
                )
        };
        let unknown: Vec<_> = self.parts.iter().copied().filter(|&part| !known(part)).collect();
        let found = !unknown.is_empty();
        if found {
            self.parts = unknown;
        }
        found
    }

    /// Refuses suffixes that were not used.
    pub(super) fn finish(self) -> Result<(), Fault> {
        match self.parts.first() {
            None => Ok(()),
            Some(part) => Err(Fault::unsupported(format!(
                "the suffix .{} is not known here",
                super::error::excerpt(part)
            ))),
        }
    }
}

/// That none of these suffixes was there.
fn none_of(names: &[&str]) -> Fault {
    let names: Vec<_> = names.iter().map(|name| format!(".{name}")).collect();
    Fault::unsupported(format!("one of {} was expected", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::Opcode;
    use crate::ir::{Order, Scope, Space, Type};

    #[test]
    fn suffixes_are_taken_in_any_order_and_none_is_lost() {
        let mut op = Opcode::new("ld.relaxed.gpu.global.L1::no_allocate.v2.f32").ok().unwrap();
        assert_eq!(op.name, "ld");
        assert_eq!(op.order(), Some(Order::Relaxed));
        assert_eq!(op.scope(), Some(Scope::Gpu));
        assert_eq!(op.space(), Space::Global);
        assert!(!op.drop_cache_hints());
        assert_eq!(op.optional_type(), Some(Type::F32));
        assert!(op.finish().is_err(), ".v2 was not taken");
    }
}
