//! A kernel's argument as it is written on the command line.
//!
//! `u64:1000` is a scalar, `in:f32:1000=ones` a buffer, `in` the same buffer once more, `bytes:0a0b` or `struct:in;u64:1000` a struct,
//! `texture:64x32:in` a texture over a buffer.

use super::content::Content;
use super::described::{self, Described};
use super::scalar;
use warpfold::{DType, Scalar};

/// What one `--arg` says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    /// A number, passed by value.
    Scalar(Scalar),
    /// The bytes of a struct.
    Bytes(Vec<u8>),
    /// The address of new memory.
    Buffer(Buffer),
    /// The address of a buffer that an earlier argument made, and some bytes more.
    Again { name: String, offset: u64 },
    /// A texture, a surface or a tensor map over a new buffer, or one that an earlier argument made.
    Described { what: Described, memory: Box<Argument> },
    /// A struct, member by member, laid out as C does.
    Struct(Vec<Argument>),
}

impl Argument {
    /// The same, to be changed.
    pub(crate) fn parts_mut(&mut self) -> &mut [Argument] {
        match self {
            Argument::Struct(members) => members,
            Argument::Described { memory, .. } => core::slice::from_mut(&mut **memory),
            other => core::slice::from_mut(other),
        }
    }

    /// Itself, the members of a struct, or the memory of a texture.
    pub(crate) fn parts(&self) -> &[Argument] {
        match self {
            Argument::Struct(members) => members,
            Argument::Described { memory, .. } => core::slice::from_ref(&**memory),
            other => core::slice::from_ref(other),
        }
    }
}

/// Memory that the kernel gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    /// The type of its elements; `None`: that of the file.
    pub(crate) dtype: Option<DType>,
    /// Its elements; `None`: as many as the content has.
    pub(crate) count: Option<u64>,
    pub(crate) content: Content,
}

impl Buffer {
    /// Whether anything is written to it before the kernel runs.
    pub(crate) fn has_content(&self) -> bool {
        self.content != Content::Unwritten
    }
}

/// Reads an `--arg`.
///
/// # Errors
/// What is wrong with it and how it would be right.
pub(crate) fn parse(word: &str) -> Result<Argument, String> {
    if let Some(described) = described::parse(word) {
        let (what, buffer) = described?;
        return match simple(buffer)? {
            memory @ (Argument::Buffer(_) | Argument::Again { offset: 0, .. }) => {
                Ok(Argument::Described { what, memory: Box::new(memory) })
            }
            _ => Err(format!("{buffer:?} is not a buffer")),
        };
    }
    match word.strip_prefix("struct:") {
        Some("") => Err("a struct has members: 'struct:in;u64:1000'".into()),
        Some(members) => members
            .split(';')
            .map(|member| match member.starts_with("struct:") {
                true => Err("a struct in a struct is written as its members".into()),
                false if described::parse(member.trim()).is_some() => {
                    Err("textures and tensor maps are arguments, not members of structs".into())
                }
                false => simple(member.trim()),
            })
            .collect::<Result<_, _>>()
            .map(Argument::Struct),
        None => simple(word),
    }
}

fn simple(word: &str) -> Result<Argument, String> {
    let (head, content) = match word.split_once('=') {
        Some((head, content)) => (head, Some(content)),
        None => (word, None),
    };
    let parts: Vec<&str> = head.split(':').collect();
    match (&parts[..], content) {
        ([name], None) => again(name),
        (["bytes", digits], None) => bytes(digits).map(Argument::Bytes),
        ([first, second], None) => match (dtype(first), dtype(second)) {
            (Some(dtype), _) => Ok(Argument::Scalar(scalar::parse(dtype, second)?)),
            (None, Some(_)) => Err(format!("how many elements? {head}:COUNT")),
            (None, None) => Err(unknown_type(first)),
        },
        ([name], Some(file)) if dtype(name).is_none() && !file.starts_with('@') => {
            Err(format!("elements of which type? {name}:f32:COUNT={file}"))
        }
        ([name], Some(value)) if dtype(name).is_some() => {
            Err(format!("a scalar is {name}:{value}, a buffer NAME:{name}:COUNT={value}"))
        }
        ([name, rest @ ..], content) if rest.len() <= 2 => {
            buffer(name, rest, content).map(Argument::Buffer)
        }
        _ => Err("too many colons: a buffer is NAME:TYPE:COUNT=CONTENT".into()),
    }
}

fn buffer(name: &str, rest: &[&str], content: Option<&str>) -> Result<Buffer, String> {
    let name = identifier(name)?;
    let dtype = match rest.first() {
        Some(word) => Some(dtype(word).ok_or_else(|| unknown_type(word))?),
        None => None,
    };
    let count = rest.get(1).map(|word| self::count(word)).transpose()?;
    let content = match (content, dtype) {
        (None, _) => Content::Unwritten,
        (Some(word), Some(dtype)) => Content::parse(word, dtype, count)?,
        (Some(word), None) => Content::parse_file(word)?,
    };
    let count = count.or(content.count());
    if count.is_none() && !matches!(content, Content::File(_)) {
        return Err("how many elements? NAME:TYPE:COUNT=CONTENT".into());
    }
    Ok(Buffer { name, dtype, count, content })
}

fn again(word: &str) -> Result<Argument, String> {
    if dtype(word).is_some() {
        return Err(format!("a scalar is {word}:VALUE, a buffer NAME:{word}:COUNT"));
    }
    let (name, offset) = match word.split_once('+') {
        Some((name, offset)) => {
            let offset = offset.parse().map_err(|_| {
                format!("{offset:?} is not a number of bytes: NAME+BYTES is an address in a buffer")
            })?;
            (name, offset)
        }
        None => (word, 0),
    };
    Ok(Argument::Again { name: identifier(name)?, offset })
}

fn identifier(name: &str) -> Result<String, String> {
    let others = ["bytes", "struct", "texture", "surface", "tensormap"];
    if dtype(name).is_some() || others.contains(&name) {
        return Err(format!("a buffer cannot be called {name}, which is a type"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !name.chars().all(is_plain) {
        return Err(format!("{name:?} is not a name: use letters, digits and underscores"));
    }
    Ok(name.to_string())
}

fn dtype(word: &str) -> Option<DType> {
    DType::from_name(word)
}

fn unknown_type(word: &str) -> String {
    let names: Vec<_> = DType::ALL.iter().map(|d| d.name()).collect();
    format!("{word:?} is not a type: use {} or bytes", names.join(", "))
}

fn count(word: &str) -> Result<u64, String> {
    crate::args::size(word).map(|n| n as u64).map_err(|why| format!("COUNT {word:?}: {why}"))
}

/// Hexadecimal digits, in the order of memory.
fn bytes(digits: &str) -> Result<Vec<u8>, String> {
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let wrong = || format!("{digits:?} are not bytes: each byte is two hexadecimal digits");
    if digits.is_empty() || !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return Err(wrong());
    }
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).map_err(|_| wrong())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(word: &str) -> Buffer {
        match parse(word) {
            Ok(Argument::Buffer(buffer)) => buffer,
            other => panic!("{word}: {other:?}"),
        }
    }

    #[test]
    fn scalars_are_a_type_and_a_value() {
        for (word, scalar) in [
            ("u64:1000", Scalar::from_bits(DType::U64, 1000)),
            ("i32:-1", Scalar::from_bits(DType::I32, u64::MAX)),
            ("f32:0.5", Scalar::F32(0.5)),
            ("bool:true", Scalar::Bool(true)),
        ] {
            assert_eq!(parse(word), Ok(Argument::Scalar(scalar)));
        }
        assert_eq!(parse("bytes:0a0B"), Ok(Argument::Bytes(vec![10, 11])));
    }

    #[test]
    fn a_struct_has_members_of_every_kind() {
        let Ok(Argument::Struct(members)) = parse("struct:in:i32=1,2,3;in+4;u64:9;bytes:00") else {
            panic!()
        };
        let words = ["in:i32=1,2,3", "in+4", "u64:9", "bytes:00"];
        assert!(
            words.iter().zip(&members).all(|(word, member)| parse(word).as_ref() == Ok(member))
        );
    }

    #[test]
    fn textures_are_of_a_buffer() {
        let Ok(mut texture) = parse("texture:8x4:in:f32:32=ones") else { panic!() };
        assert_eq!(texture.parts(), [parse("in:f32:32=ones").unwrap()]);
        assert_eq!(texture.parts_mut().len(), 1);
        let Ok(Argument::Described { memory, .. }) = parse("tensormap:8x4/8x2:in") else {
            panic!()
        };
        assert_eq!(*memory, parse("in").unwrap());
    }

    #[test]
    fn buffers_have_a_name_a_type_and_a_count() {
        let out = made("out:f32:4");
        assert_eq!((out.name.as_str(), out.dtype, out.count), ("out", Some(DType::F32), Some(4)));
        assert_eq!(out.content, Content::Unwritten);
        assert_eq!(made("in:u8:2K").count, Some(2048));
        assert_eq!(made("in:i32=1,2,3").count, Some(3));
        assert_eq!((made("in=@a=b:c.npy").dtype, made("in:f64=@x.npy").count), (None, None));
        assert_eq!(made("in=@a=b:c.npy").content, Content::File("a=b:c.npy".into()));
    }

    #[test]
    fn a_name_alone_is_the_same_buffer_again() {
        let again = |offset| Ok(Argument::Again { name: "in".into(), offset });
        assert_eq!((parse("in"), parse("in+4")), (again(0), again(4)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (word, part) in [
            ("", "not a name"),
            ("f32", "f32:VALUE"),
            ("f32=1", "a scalar is f32:1"),
            ("u64:x", "\"x\""),
            ("u8:256", "u8"),
            ("in:f32", "how many"),
            ("in:f32=ones", "how many"),
            ("in=ones", "which type"),
            ("in:f31:4", "\"f31\" is not a type"),
            ("x:y", "\"x\" is not a type"),
            ("in:f32:0", "more than 0"),
            ("in:f32:-1", "COUNT"),
            ("in:f32:4:5", "too many colons"),
            ("a b:f32:4", "not a name"),
            ("f64:f32:4", "which is a type"),
            ("in+x", "NAME+BYTES"),
            ("bytes:abc", "two hexadecimal digits"),
            ("bytes:zz", "two hexadecimal digits"),
            ("in:f32:4=", "nothing after"),
            ("in:f32:4=some", "\"some\""),
            ("in:f32=@", "which file"),
            ("struct:", "members"),
            ("struct:u64:1;;u8:1", "not a name"),
            ("struct:u64:1;struct:u8:1", "as its members"),
            ("struct:u64:1;texture:4:in", "not members of structs"),
            ("texture:4:u32:1", "not a buffer"),
            ("texture:4:in+4", "not a buffer"),
            ("texture:4:in:f32", "how many"),
            ("surface", "a type"),
        ] {
            let why = parse(word).unwrap_err();
            assert!(why.contains(part), "{word}: {part:?} is not in {why:?}");
        }
    }
}
