//! States whose kind and element type are known at run time.

use super::wide::Wide;
use super::{Kind, Op, Rules, Run, State, Value, payload};
use crate::DType;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::fpenv;
use core::any::Any;
use core::fmt;

/// Names the state type for a kind and an element type known at run time:
/// `with_state!(kind, dtype, S => expression, else => expression)`. The `else`
/// expression is for pairs that no operation uses: bits of floats are not even compiled.
///
/// The one list of states by kind: a new kind does not compile without its state.
#[macro_export]
macro_rules! with_state {
    ($kind:expr, $dtype:expr, $S:ident => $body:expr, else => $otherwise:expr) => {{
        use $crate::op::{self, Kind};
        let (kind, dtype): (Kind, $crate::DType) = ($kind, $dtype);
        if Kind::supports(kind, dtype) {
            $crate::with_element!(dtype, T => match kind {
                Kind::Sum | Kind::AbsSum => {
                    type $S = op::Sums<T>;
                    $body
                }
                Kind::SquareSum | Kind::Dot => {
                    type $S = op::Squares<T>;
                    $body
                }
                Kind::Moments => {
                    type $S = op::Moments<T>;
                    $body
                }
                Kind::Extrema | Kind::ArgExtrema => {
                    type $S = op::Extrema<T>;
                    $body
                }
                Kind::Counts => {
                    type $S = op::Counts<T>;
                    $body
                }
                Kind::Bits if const { !<T as $crate::Element>::DTYPE.is_float() } => {
                    type $S = op::Bits<T>;
                    $body
                }
                Kind::Prod => {
                    type $S = <T as op::Ordered>::Prod;
                    $body
                }
                Kind::LogSumExp => {
                    type $S = <T as op::Ordered>::LogSumExp;
                    $body
                }
                Kind::Bits => $otherwise,
            })
        } else {
            $otherwise
        }
    }};
}

/// A run of elements whose type is known at run time.
#[derive(Clone, Copy, Debug)]
pub struct RawRun<'a> {
    /// The position of the first element.
    pub start: u64,
    /// The elements' bytes, aligned for their type.
    pub items: &'a [u8],
    /// The second array's, for `dot`; else empty.
    pub others: &'a [u8],
}

impl<'a> RawRun<'a> {
    /// The run as elements of type `T`; `None` if the bytes are not aligned or
    /// not a whole number of them.
    #[must_use]
    pub fn typed<T: Element>(self) -> Option<Run<'a, T>> {
        // An empty slice may have any address; a cast would ask for alignment.
        let cast = |bytes: &'a [u8]| -> Option<&'a [T]> {
            if bytes.is_empty() { Some(&[]) } else { bytemuck::try_cast_slice(bytes).ok() }
        };
        Some(Run { start: self.start, items: cast(self.items)?, others: cast(self.others)? })
    }
}

/// The methods of every state, independent of its type.
trait Erased: Send + Sync {
    fn dtype(&self) -> DType;
    fn kind(&self) -> Kind;
    fn check_merge(&self, other: &dyn Any) -> Option<Result<()>>;
    fn merge(&mut self, other: &dyn Any) -> Option<Result<()>>;
    fn most_bytes(&self, positions: u64) -> usize;
    fn skip(&mut self, start: u64, len: u64);
    fn end(&self) -> u64;
    fn reset(&mut self);
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value>;
    fn write(&self, out: &mut Vec<u8>);
    fn duplicate(&self) -> Box<dyn Erased>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<S: State> Erased for S {
    fn dtype(&self) -> DType {
        S::Item::DTYPE
    }
    fn kind(&self) -> Kind {
        State::kind(self)
    }
    fn check_merge(&self, other: &dyn Any) -> Option<Result<()>> {
        Some(State::check_merge(self, other.downcast_ref::<S>()?))
    }
    fn most_bytes(&self, positions: u64) -> usize {
        S::most_bytes(positions)
    }
    fn merge(&mut self, other: &dyn Any) -> Option<Result<()>> {
        Some(State::merge(self, other.downcast_ref::<S>()?))
    }
    fn skip(&mut self, start: u64, len: u64) {
        State::skip(self, start, len);
    }
    fn end(&self) -> u64 {
        State::end(self)
    }
    fn reset(&mut self) {
        *self = S::identity(State::kind(self));
    }
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        State::finish(self, op, rules)
    }
    fn write(&self, out: &mut Vec<u8>) {
        State::write(self, out);
    }
    fn duplicate(&self) -> Box<dyn Erased> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// A state of any kind over elements of any type.
pub struct AnyState(Box<dyn Erased>);

const MAGIC: [u8; 4] = *b"WFst";
const VERSION: u16 = 1;
const HEADER: usize = 16;
const TRAILER: usize = 8;
/// In the place of a type: i64, with elements beyond them.
const WIDE: u8 = 0x85;

impl AnyState {
    /// The state of no elements.
    ///
    /// # Errors
    /// [`DamagedState`](Error::DamagedState) if no operation needs this kind
    /// over this type.
    pub fn identity(kind: Kind, dtype: DType) -> Result<AnyState> {
        with_state!(kind, dtype,
            S => Ok(AnyState::from(<S as State>::identity(kind))),
            else => Err(kind.no_state_of(dtype)))
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.0.dtype()
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// The typed state, if it is an `S`.
    #[must_use]
    pub fn downcast_ref<S: State>(&self) -> Option<&S> {
        self.0.as_any().downcast_ref()
    }

    /// The typed state, if it is an `S`.
    pub fn downcast_mut<S: State>(&mut self) -> Option<&mut S> {
        self.0.as_any_mut().downcast_mut()
    }

    /// The state over decimals beyond 64 bits, if it is one.
    pub(super) fn wide(&self) -> Option<&Wide> {
        self.0.as_any().downcast_ref()
    }

    /// Whether some elements, which are decimals, are beyond 64 bits.
    #[doc(hidden)]
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.wide().is_some()
    }

    /// Both as states that take in elements of any size, if one of them is.
    fn widened(&self, other: &AnyState) -> Option<[Wide; 2]> {
        let wide = self.wide().is_some() || other.wide().is_some();
        if wide { Some([Wide::of(self)?, Wide::of(other)?]) } else { None }
    }

    /// The position behind the last one that it holds; 0 if it holds none, or does not
    /// depend on positions.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.0.end()
    }

    /// Whether [`merge`](Self::merge) takes in `other`; nothing is changed.
    ///
    /// # Errors
    /// Those of [`merge`](Self::merge), which does not fail if this does not.
    pub fn check_merge(&self, other: &AnyState) -> Result<()> {
        if let Some([ours, theirs]) = self.widened(other) {
            return State::check_merge(&ours, &theirs);
        }
        let checked = self.0.check_merge(other.0.as_any());
        checked.unwrap_or_else(|| Err(self.mismatch(other)))
    }

    /// Takes in another state. After an error this state is what it was
    /// before.
    ///
    /// # Errors
    /// [`StateMismatch`](Error::StateMismatch) if it is of another kind or
    /// type, and the errors of [`State::merge`].
    pub fn merge(&mut self, other: &AnyState) -> Result<()> {
        if let Some([mut ours, theirs]) = self.widened(other) {
            State::merge(&mut ours, &theirs)?;
            self.0 = Box::new(ours);
            return Ok(());
        }
        // Anchors of sums of exponentials are floats.
        let merged = fpenv::usual(|| self.0.merge(other.0.as_any()));
        merged.unwrap_or_else(|| Err(self.mismatch(other)))
    }

    /// What to say of a state that has another type than this one.
    fn mismatch(&self, other: &AnyState) -> Error {
        let (left, right) = (self.dtype(), other.dtype());
        if left == right {
            return payload::kind_mismatch(self.kind(), other.kind());
        }
        let (left, right) = (left.to_string(), right.to_string());
        Error::StateMismatch { what: "element type", left, right }
    }

    /// The most bytes of memory that a state of this kind takes; see
    /// [`State::most_bytes`].
    #[must_use]
    pub fn most_bytes(&self, positions: u64) -> usize {
        self.0.most_bytes(positions)
    }

    /// Marks positions as missing; see [`State::skip`].
    pub fn skip(&mut self, start: u64, len: u64) {
        self.0.skip(start, len);
    }

    /// Goes back to the state of no elements, in the same memory.
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// The value of `op`; see [`State::finish`].
    ///
    /// # Errors
    /// Those of [`State::finish`].
    pub fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        fpenv::usual(|| self.0.finish(op, rules))
    }

    /// The payload alone. For superaccumulators it is a vector of little-endian 64-bit
    /// integers, and elementwise sums of payloads are payloads.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.0.write(&mut out);
        out
    }

    /// The inverse of [`payload`](Self::payload).
    ///
    /// # Errors
    /// [`DamagedState`](Error::DamagedState).
    pub fn from_payload(kind: Kind, dtype: DType, payload: &[u8]) -> Result<AnyState> {
        fpenv::usual(|| {
            with_state!(kind, dtype,
                S => <S as State>::read(kind, payload).map(AnyState::from),
                else => Err(kind.no_state_of(dtype)))
        })
    }

    /// The versioned, checksummed byte form: magic, version, kind, type and
    /// payload length in 16 bytes, the payload, and a CRC-32 of all before it
    /// in 8. Little-endian throughout.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.push(self.kind().code());
        out.push(if self.is_wide() { WIDE } else { self.dtype().code() });
        out.extend_from_slice(&[0; 8]);
        self.0.write(&mut out);
        let len = (out.len() - HEADER) as u64;
        out[8..HEADER].copy_from_slice(&len.to_le_bytes());
        let checksum = u64::from(crc32fast::hash(&out));
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads one byte form from the front of `bytes`, and advances `bytes`.
    ///
    /// # Errors
    /// [`DamagedState`](Error::DamagedState),
    /// [`RetiredState`](Error::RetiredState) or
    /// [`StateVersion`](Error::StateVersion).
    pub fn read_from(bytes: &mut &[u8]) -> Result<AnyState> {
        let damaged = |why: &str| Error::DamagedState { why: why.into() };
        let header: &[u8; HEADER] =
            bytes.first_chunk().ok_or_else(|| damaged("it ends within its header"))?;
        if header[..4] != MAGIC {
            return Err(damaged("bad magic number"));
        }
        let version = u16::from_le_bytes([header[4], header[5]]);
        if version != VERSION {
            return Err(Error::StateVersion { found: version.into(), reads: VERSION.into() });
        }
        let mut len = [0; 8];
        len.copy_from_slice(&header[8..]);
        let end = usize::try_from(u64::from_le_bytes(len))
            .ok()
            .and_then(|len| len.checked_add(HEADER))
            .filter(|end| end.checked_add(TRAILER).is_some_and(|all| all <= bytes.len()))
            .ok_or_else(|| damaged("it ends within its payload"))?;
        let (body, rest) = bytes.split_at(end);
        let mut checksum = [0; TRAILER];
        checksum.copy_from_slice(&rest[..TRAILER]);
        if u64::from_le_bytes(checksum) != u64::from(crc32fast::hash(body)) {
            return Err(damaged("its checksum is wrong"));
        }
        if let Some(was) = Kind::retired(header[6]) {
            return Err(Error::RetiredState { was });
        }
        let kind = Kind::from_code(header[6]).ok_or_else(|| damaged("its kind is unknown"))?;
        let payload = &body[HEADER..];
        let state = if header[7] == WIDE {
            Wide::read(kind, payload)?.into()
        } else {
            let dtype = DType::from_code(header[7]);
            let dtype = dtype.ok_or_else(|| damaged("its element type is unknown"))?;
            AnyState::from_payload(kind, dtype, payload)?
        };
        *bytes = &rest[TRAILER..];
        Ok(state)
    }

    /// Reads the byte form of one state and nothing else.
    ///
    /// # Errors
    /// Those of [`read_from`](Self::read_from); bytes left over are damage.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<AnyState> {
        let state = AnyState::read_from(&mut bytes)?;
        match bytes.len() {
            0 => Ok(state),
            more => Err(Error::DamagedState { why: format!("{more} bytes follow it") }),
        }
    }
}

impl Kind {
    /// The error that no operation needs this kind over elements of this type.
    #[doc(hidden)]
    #[must_use]
    pub fn no_state_of(self, dtype: DType) -> Error {
        Error::DamagedState { why: format!("there is no {self:?} of {dtype} elements") }
    }
}

impl<S: State> From<S> for AnyState {
    fn from(state: S) -> AnyState {
        AnyState(Box::new(state))
    }
}

impl Clone for AnyState {
    fn clone(&self) -> Self {
        AnyState(self.0.duplicate())
    }
}

/// Equal states have the same payload: their forms are canonical.
impl PartialEq for AnyState {
    fn eq(&self, other: &Self) -> bool {
        (self.kind(), self.dtype(), self.is_wide())
            == (other.kind(), other.dtype(), other.is_wide())
            && self.payload() == other.payload()
    }
}
impl Eq for AnyState {}

impl fmt::Debug for AnyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyState({:?} of {})", self.kind(), self.dtype())
    }
}
