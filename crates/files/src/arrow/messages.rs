//! The descriptions of Arrow's schemas and batches: FlatBuffers, of which each place is checked when it is looked at. The numbers
//! of fields are those of Arrow's `Schema.fbs`, `Message.fbs` and `File.fbs`.

use super::plan::Span;
use warpfold::Tick;

/// What is read, or why it is damaged.
type Read<T> = Result<T, String>;

fn bytes<const N: usize>(all: &[u8], at: usize) -> Read<[u8; N]> {
    let found = all.get(at..).and_then(<[u8]>::first_chunk);
    found.copied().ok_or_else(|| "an offset outside of its message".into())
}

/// Where the offset at a place leads.
fn follow(all: &[u8], at: usize) -> Read<usize> {
    Ok(at.saturating_add(u32::from_le_bytes(bytes(all, at)?) as usize))
}

/// A table: its fields may be absent.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    all: &'a [u8],
    at: usize,
    /// Where it says at which of its bytes each field is, and the length of that.
    fields: usize,
    len: usize,
}

impl<'a> Table<'a> {
    fn at(all: &'a [u8], at: usize) -> Read<Table<'a>> {
        let back = i64::from(i32::from_le_bytes(bytes(all, at)?));
        let fields = usize::try_from(at as i64 - back).map_err(|e| e.to_string())?;
        let len = usize::from(u16::from_le_bytes(bytes(all, fields)?));
        Ok(Table { all, at, fields, len })
    }

    /// The place of a field.
    fn place(&self, field: usize) -> Read<Option<usize>> {
        let at = 4 + 2 * field;
        if at + 2 > self.len {
            return Ok(None);
        }
        let place = u16::from_le_bytes(bytes(self.all, self.fields.saturating_add(at))?);
        Ok((place != 0).then(|| self.at.saturating_add(place.into())))
    }

    /// An integer of `N` bytes, which is `absent` where there is none.
    fn integer<const N: usize>(&self, field: usize, absent: i64) -> Read<i64> {
        let Some(at) = self.place(field)? else { return Ok(absent) };
        let little = bytes::<N>(self.all, at)?;
        let mut wide = [if little[N - 1] >= 0x80 { 0xff } else { 0 }; 8];
        wide[..N].copy_from_slice(&little);
        Ok(i64::from_le_bytes(wide))
    }

    fn table(&self, field: usize) -> Read<Option<Table<'a>>> {
        let Some(at) = self.place(field)? else { return Ok(None) };
        Table::at(self.all, follow(self.all, at)?).map(Some)
    }

    /// The bytes of elements of `size` bytes, and where they begin.
    fn elements(&self, field: usize, size: usize) -> Read<Option<(&'a [u8], usize)>> {
        let Some(at) = self.place(field)? else { return Ok(None) };
        let at = follow(self.all, at)?;
        let len = u32::from_le_bytes(bytes(self.all, at)?) as usize;
        let first = at.saturating_add(4);
        let end = len.checked_mul(size).and_then(|len| first.checked_add(len));
        let found = end.and_then(|end| self.all.get(first..end));
        Ok(Some((found.ok_or("a vector outside of its message")?, first)))
    }

    /// Of integers that lie together in so many bytes.
    fn rows<const N: usize>(&self, field: usize) -> Read<&'a [[u8; N]]> {
        Ok(self.elements(field, N)?.map_or(&[], |(found, _)| found.as_chunks().0))
    }

    fn text(&self, field: usize) -> Read<Option<&'a str>> {
        let text = self.elements(field, 1)?.map(|(text, _)| str::from_utf8(text));
        text.transpose().map_err(|e| e.to_string())
    }
}

/// A word of 64 bits of some that lie together.
fn word(row: &[u8], i: usize) -> i64 {
    row.as_chunks().0.get(i).map_or(0, |word| i64::from_le_bytes(*word))
}

/// What a message is.
#[derive(Clone, Copy)]
pub(super) enum Header<'a> {
    Schema(Schema<'a>),
    Dictionary(DictionaryBatch<'a>),
    Batch(RecordBatch<'a>),
    Other,
}

/// A message, whose body has so many bytes.
pub(super) struct Message<'a> {
    pub(super) header: Header<'a>,
    pub(super) body: u64,
}

impl<'a> Message<'a> {
    pub(super) fn new(all: &'a [u8]) -> Read<Message<'a>> {
        let message = Table::at(all, follow(all, 0)?)?;
        let version = message.integer::<2>(0, 0)?;
        let header = match (message.integer::<1>(1, 0)?, message.table(2)?) {
            (1, Some(table)) => Header::Schema(Schema { table, version }),
            (2, Some(table)) => Header::Dictionary(DictionaryBatch::new(table)?),
            (3, Some(table)) => Header::Batch(RecordBatch::new(table)?),
            _ => Header::Other,
        };
        let body = message.integer::<8>(3, 0)?;
        let body = u64::try_from(body).map_err(|_| "a body of negative length")?;
        Ok(Message { header, body })
    }

    pub(super) fn batch(&self) -> Read<RecordBatch<'a>> {
        match self.header {
            Header::Batch(batch) => Ok(batch),
            _ => Err("a message is not a record batch".into()),
        }
    }

    pub(super) fn dictionary(&self) -> Read<DictionaryBatch<'a>> {
        match self.header {
            Header::Dictionary(dictionary) => Ok(dictionary),
            _ => Err("a message is not a dictionary".into()),
        }
    }
}

/// The end of a file: its schema, and where the messages of dictionaries and of batches lie.
pub(super) struct Footer<'a> {
    pub(super) schema: Option<Schema<'a>>,
    dictionaries: &'a [[u8; 24]],
    batches: &'a [[u8; 24]],
}

/// Where a message lies: its offset, and the lengths of its description and of its body.
pub(super) type Place = (i64, i64, i64);

impl<'a> Footer<'a> {
    pub(super) fn new(all: &'a [u8]) -> Read<Footer<'a>> {
        let footer = Table::at(all, follow(all, 0)?)?;
        let version = footer.integer::<2>(0, 0)?;
        let schema = footer.table(1)?.map(|table| Schema { table, version });
        Ok(Footer { schema, dictionaries: footer.rows(2)?, batches: footer.rows(3)? })
    }

    pub(super) fn dictionaries(&self) -> impl Iterator<Item = Place> {
        self.dictionaries.iter().map(place)
    }

    pub(super) fn batches(&self) -> impl Iterator<Item = Place> {
        self.batches.iter().map(place)
    }
}

fn place(block: &[u8; 24]) -> Place {
    // The length of the description has 32 bits, and as many that mean nothing.
    (word(block, 0), i64::from(word(block, 1) as i32), word(block, 2))
}

#[derive(Clone, Copy)]
pub(super) struct DictionaryBatch<'a> {
    pub(super) id: i64,
    pub(super) is_delta: bool,
    values: Option<RecordBatch<'a>>,
}

impl<'a> DictionaryBatch<'a> {
    fn new(table: Table<'a>) -> Read<Self> {
        let values = table.table(1)?.map(RecordBatch::new).transpose()?;
        let is_delta = table.integer::<1>(2, 0)? != 0;
        Ok(DictionaryBatch { id: table.integer::<8>(0, 0)?, is_delta, values })
    }

    pub(super) fn values(&self) -> Read<RecordBatch<'a>> {
        self.values.ok_or_else(|| "a dictionary without values".into())
    }
}

#[derive(Clone, Copy)]
pub(super) struct RecordBatch<'a> {
    pub(super) rows: u64,
    nodes: &'a [[u8; 16]],
    buffers: &'a [[u8; 16]],
    /// The code of a compression.
    pub(super) codec: Option<i64>,
    variadic: &'a [[u8; 8]],
}

impl<'a> RecordBatch<'a> {
    fn new(table: Table<'a>) -> Read<Self> {
        let rows = table.integer::<8>(0, 0)?;
        let codec = table.table(3)?.map(|compression| compression.integer::<1>(0, 0));
        Ok(RecordBatch {
            rows: u64::try_from(rows).map_err(|_| "a record batch of negative length")?,
            nodes: table.rows(1)?,
            buffers: table.rows(2)?,
            codec: codec.transpose()?,
            variadic: table.rows(4)?,
        })
    }

    /// How many rows a node has, and how many of them are null.
    pub(super) fn node(&self, i: usize) -> Read<(i64, i64)> {
        let node = self.nodes.get(i).ok_or("a record batch lacks a column")?;
        Ok((word(node, 0), word(node, 1)))
    }

    pub(super) fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// Where a buffer lies in a body of so many bytes.
    pub(super) fn buffer(&self, i: usize, body: u64) -> Read<Span> {
        let found = self.buffers.get(i).ok_or("a record batch lacks a buffer")?;
        match (u64::try_from(word(found, 0)), u64::try_from(word(found, 1))) {
            (Ok(at), Ok(len)) if at.checked_add(len).is_some_and(|end| end <= body) => {
                Ok(Span { at, len })
            }
            _ => Err("a buffer lies outside its record batch".into()),
        }
    }

    /// How many buffers each of the columns has of which this differs from batch to batch.
    pub(super) fn variadic(&self) -> impl Iterator<Item = i64> + use<'a> {
        self.variadic.iter().map(|count| i64::from_le_bytes(*count))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Schema<'a> {
    table: Table<'a>,
    /// Of the format, counted from zero.
    version: i64,
}

impl<'a> Schema<'a> {
    pub(super) fn is_big_endian(&self) -> Read<bool> {
        Ok(self.table.integer::<2>(0, 0)? == 1)
    }

    /// Unions had a validity bitmap up to version 4.
    pub(super) fn has_bitmaps_of_unions(&self) -> bool {
        self.version < 4
    }

    pub(super) fn fields(&self) -> Read<Vec<Field<'a>>> {
        // A field has more than four bytes: where there are more of them, they are each other's children.
        fields(self.table, 1, 64, &mut (self.table.all.len() / 4))
    }
}

pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) of: Type<'a>,
    /// The number of its dictionary, and the type of the keys, if it has one.
    pub(super) dictionary: Option<(i64, Integer)>,
    pub(super) children: Vec<Field<'a>>,
}

/// Bits, and whether they have a sign.
pub(super) type Integer = (i64, bool);

#[derive(Clone, Copy)]
pub(super) enum Type<'a> {
    Int(Integer),
    /// Half, single or double, from zero.
    Float(i64),
    Decimal {
        bits: i64,
        precision: i64,
        scale: i64,
    },
    Date {
        days: bool,
    },
    Time(i64, Option<Tick>),
    /// With the zone that it is shown in.
    Timestamp(Option<Tick>, Option<&'a str>),
    Duration(Option<Tick>),
    Union {
        dense: bool,
    },
    /// One of [`NAMES`] that needs no more words.
    Other(&'static str),
}

/// Of the types, by their codes.
const NAMES: &str = "none null int floatingpoint binary utf8 bool decimal date time timestamp \
    interval list struct union fixedsizebinary fixedsizelist map duration largebinary largeutf8 \
    largelist runendencoded binaryview utf8view listview largelistview";

fn fields<'a>(of: Table<'a>, field: usize, depth: u32, left: &mut usize) -> Read<Vec<Field<'a>>> {
    let Some((found, first)) = of.elements(field, 4)? else { return Ok(Vec::new()) };
    if depth == 0 {
        return Err("the schema is nested too deeply".into());
    }
    let one = |i| {
        *left = left.checked_sub(1).ok_or("the schema has a field that contains itself")?;
        let field = Table::at(of.all, follow(of.all, first + 4 * i)?)?;
        let dictionary = field.table(4)?.map(|dictionary| {
            // Keys of no stated type have 32 bits.
            let keys = dictionary.table(1)?.map_or(Ok((32, true)), integer)?;
            Ok::<_, String>((dictionary.integer::<8>(0, 0)?, keys))
        });
        Ok(Field {
            name: field.text(0)?.unwrap_or_default(),
            of: type_of(field)?,
            dictionary: dictionary.transpose()?,
            children: fields(field, 5, depth - 1, left)?,
        })
    };
    (0..found.len() / 4).map(one).collect()
}

fn integer(table: Table<'_>) -> Read<Integer> {
    Ok((table.integer::<4>(0, 0)?, table.integer::<1>(1, 0)? != 0))
}

fn type_of(field: Table<'_>) -> Read<Type<'_>> {
    let code = field.integer::<1>(2, 0)?;
    let name = usize::try_from(code).ok().and_then(|code| NAMES.split(' ').nth(code));
    let name = name.ok_or("the schema has a type this build does not know")?;
    let Some(table) = field.table(3)? else { return Ok(Type::Other(name)) };
    let tick = |absent| {
        Ok::<_, String>(match table.integer::<2>(0, absent)? {
            0 => Some(Tick::Second),
            1 => Some(Tick::Milli),
            2 => Some(Tick::Micro),
            3 => Some(Tick::Nano),
            _ => None,
        })
    };
    Ok(match name {
        "int" => Type::Int(integer(table)?),
        "floatingpoint" => Type::Float(table.integer::<2>(0, 0)?),
        "decimal" => Type::Decimal {
            precision: table.integer::<4>(0, 0)?,
            scale: table.integer::<4>(1, 0)?,
            bits: table.integer::<4>(2, 128)?,
        },
        "date" => Type::Date { days: table.integer::<2>(0, 1)? == 0 },
        "time" => Type::Time(table.integer::<4>(1, 32)?, tick(1)?),
        "timestamp" => Type::Timestamp(tick(0)?, table.text(1)?),
        "duration" => Type::Duration(tick(1)?),
        "union" => Type::Union { dense: table.integer::<2>(0, 0)? == 1 },
        _ => Type::Other(name),
    })
}
