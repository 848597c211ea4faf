//! safetensors: a JSON header, then the tensors one after the other.

use crate::columns;
use crate::file::PositionalFile;
use crate::fixed::{FixedFile, Layout};
use crate::format::LONGEST_SAFETENSORS_HEADER;
use crate::open::OpenOptions;
use crate::source::element_count;
use crate::{Access, Description, Endian, Error, Extent, Format, Order, Result, Source};
use core::fmt;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::sync::Arc;
use warpfold_core::DType;

/// The tensors chosen from a file.
pub(crate) fn open(
    file: &Arc<PositionalFile>,
    member: Option<&str>,
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let tensors = read_header(file)?;
    let name = file.name();
    let names: Vec<String> = tensors.iter().map(|t| t.name.clone()).collect();
    let chosen = match (member, &options.columns[..], &tensors[..]) {
        (Some(wanted), ..) => match names.iter().position(|n| n == wanted) {
            Some(i) => vec![i],
            None => {
                return Err(Error::format(
                    name,
                    format!("there is no tensor {wanted:?}; there are {}", columns::list(&names)),
                ));
            }
        },
        (None, [], []) => return Err(Error::format(name, "the file holds no tensors")),
        (None, [], [_]) => vec![0],
        (None, [], _) => {
            let error = Error::format(
                &name,
                format!("which tensor? There are {}: {}", names.len(), columns::list(&names)),
            );
            // Types that are not supported are not suggested.
            return Err(match tensors.iter().find(|t| t.dtype.is_some()) {
                Some(t) => error.with_hint(format!("name it after a colon: {name}:{}", t.name)),
                None => error,
            });
        }
        (None, wanted, _) => columns::resolve(wanted, &names, &name)?,
    };
    chosen.into_iter().map(|i| tensors[i].source(file, options)).collect()
}

/// What `inspect` says about a file.
pub(crate) fn inspect(file: &Arc<PositionalFile>) -> Result<Vec<Description>> {
    let name = file.name();
    Ok(read_header(file)?.into_iter().map(|t| t.describe(&name)).collect())
}

struct Tensor {
    name: String,
    stored_as: String,
    dtype: Option<DType>,
    shape: Vec<usize>,
    /// Where in the file it begins, and its length.
    start: u64,
    bytes: u64,
}

/// An entry of the header.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Shape,
    data_offsets: (u64, u64),
}

/// The lengths of the axes, of which there are few: a header may not be turned
/// into many times its size.
#[derive(Default)]
struct Shape(Vec<u64>);

/// More axes than anybody has use for.
const MOST_AXES: usize = 64;

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Axes;
        impl<'de> Visitor<'de> for Axes {
            type Value = Shape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a shape of at most {MOST_AXES} axes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut axes: A) -> Result<Shape, A::Error> {
                let mut shape = Vec::new();
                while let Some(axis) = axes.next_element()? {
                    if shape.len() == MOST_AXES {
                        return Err(A::Error::invalid_length(shape.len() + 1, &self));
                    }
                    shape.push(axis);
                }
                Ok(Shape(shape))
            }
        }
        from.deserialize_seq(Axes)
    }
}

/// The entries of a header, each made into a tensor as it comes: a tree of the
/// whole would take ten times the memory.
struct Entries<'a> {
    file: &'a str,
    /// Where the data begin, and how many bytes there are.
    data: u64,
    available: u64,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = Result<Vec<Tensor>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = Result<Vec<Tensor>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut tensors = Vec::new();
        let mut wrong = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" || wrong.is_some() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let entry: Entry<'_> = map
                .next_value()
                .map_err(|e| A::Error::custom(format_args!("tensor {name:?}: {e}")))?;
            match Tensor::new(name, entry, &self) {
                Ok(tensor) => tensors.push(tensor),
                Err(error) => wrong = Some(error),
            }
        }
        Ok(wrong.map_or(Ok(tensors), Err))
    }
}

fn read_header(file: &Arc<PositionalFile>) -> Result<Vec<Tensor>> {
    let name = file.name();
    let fail = |what: String| Error::format(&name, what);
    if file.len() < 8 {
        return Err(fail("truncated: a safetensors file has at least 8 bytes".into()));
    }
    let mut len = [0; 8];
    file.read_exact_at(&mut len, 0)?;
    let len = u64::from_le_bytes(len);
    if len > LONGEST_SAFETENSORS_HEADER || len > file.len() - 8 {
        return Err(fail(format!(
            "not a safetensors file, or truncated: the header claims to be {len} bytes long"
        )));
    }
    let header = file.read_vec(8, len)?;
    let data = 8 + len;
    let entries = Entries { file: &name, data, available: file.len() - data };
    let damaged =
        |e: &dyn fmt::Display| Error::format(&name, format!("damaged safetensors header: {e}"));
    let mut json = serde_json::Deserializer::from_slice(&header);
    let mut tensors = entries.deserialize(&mut json).map_err(|e| damaged(&e))??;
    json.end().map_err(|e| damaged(&e))?;
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(twice) = tensors.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(damaged(&format_args!("tensor {:?} is there twice", twice[0].name)));
    }
    // In the order of the file, not of the alphabet.
    tensors.sort_by_key(|t| t.start);
    Ok(tensors)
}

fn dtype(name: &str) -> Option<DType> {
    Some(match name {
        "BOOL" => DType::Bool,
        "I8" => DType::I8,
        "I16" => DType::I16,
        "I32" => DType::I32,
        "I64" => DType::I64,
        "U8" => DType::U8,
        "U16" => DType::U16,
        "U32" => DType::U32,
        "U64" => DType::U64,
        "F16" => DType::F16,
        "BF16" => DType::BF16,
        "F32" => DType::F32,
        "F64" => DType::F64,
        _ => return None,
    })
}

impl Tensor {
    fn new(name: String, entry: Entry<'_>, all: &Entries<'_>) -> Result<Self> {
        let bad = |what: String| {
            Error::format(all.file, format!("damaged safetensors header: tensor {name:?}: {what}"))
        };
        let (from, to) = entry.data_offsets;
        if from > to || to > all.available {
            return Err(bad(format!(
                "its bytes {from} to {to} do not lie within the {} bytes of data",
                all.available
            )));
        }
        let axes = entry.shape.0.iter();
        let shape = axes
            .map(|&d| usize::try_from(d).map_err(|_| bad(format!("the shape holds {d}"))))
            .collect::<Result<Vec<_>>>()?;
        let dtype = dtype(&entry.dtype);
        if let Some(dtype) = dtype {
            let needed = element_count(&shape).and_then(|n| n.checked_mul(dtype.size() as u64));
            if needed != Some(to - from) {
                return Err(bad(format!(
                    "the shape {shape:?} of {dtype} does not take the {} bytes it has",
                    to - from
                )));
            }
        }
        Ok(Tensor {
            name,
            stored_as: entry.dtype.into_owned(),
            dtype,
            shape,
            start: all.data + from,
            bytes: to - from,
        })
    }

    fn extent(&self) -> Extent {
        Extent::Array { shape: self.shape.clone(), order: Order::C }
    }

    fn why_not(&self) -> Option<String> {
        let what = match &*self.stored_as {
            s if s.starts_with("F8") => "8-bit floats are not supported",
            s if s.starts_with("F4") || s.starts_with("F6") => "sub-byte floats are not supported",
            s if s.starts_with('C') => "complex numbers are not supported",
            _ => "this type is not supported",
        };
        self.dtype.is_none().then(|| what.into())
    }

    fn source(&self, file: &Arc<PositionalFile>, options: &OpenOptions) -> Result<Source> {
        let name = format!("{}:{}", file.name(), self.name);
        let Some(dtype) = self.dtype else {
            let why = self.why_not().unwrap_or_default();
            return Err(Error::format(name, format!("elements of type {}: {why}", self.stored_as)));
        };
        options.expect_dtype(options.dtype, dtype, &name)?;
        let layout = Layout::packed(dtype, Endian::Little, self.start);
        Ok(Source {
            name,
            dtype,
            extent: self.extent(),
            bytes: Some(self.bytes),
            access: Access::Random(Box::new(FixedFile {
                file: Arc::clone(file),
                layout,
                seal: None,
            })),
        })
    }

    fn describe(self, file: &str) -> Description {
        Description {
            name: format!("{file}:{}", self.name),
            format: Format::Safetensors,
            why_not: self.why_not(),
            extent: Some(self.extent()),
            endian: self.dtype.filter(|d| d.size() > 1).map(|_| Endian::Little),
            stored_as: self.stored_as,
            dtype: self.dtype,
            offset: Some(self.start),
            bytes: Some(self.bytes),
            compression: None,
            unit: None,
        }
    }
}
