//! FlatBuffers, as Arrow describes its data by them.

/// What a field of a table holds, or a buffer as a whole.
#[derive(Clone)]
pub(super) enum Item {
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    Text(String),
    /// Fields in the order of their numbers; some may be absent.
    Table(Vec<Option<Item>>),
    Tables(Vec<Item>),
    /// So many structures of words.
    Structs(usize, Vec<i64>),
}

impl Item {
    /// The buffer of a table.
    pub(super) fn buffer(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        let root = self.write(&mut out);
        point(&mut out, 0, root);
        out
    }

    /// The bytes that stand in a table itself; in place of others, zeros for where they are.
    fn inline(&self) -> Vec<u8> {
        match self {
            Item::Byte(byte) => vec![*byte],
            Item::Short(short) => short.to_le_bytes().to_vec(),
            Item::Int(int) => int.to_le_bytes().to_vec(),
            Item::Long(long) => long.to_le_bytes().to_vec(),
            _ => vec![0; 4],
        }
    }

    /// Appends what stands outside of tables. Returns its place.
    fn write(&self, out: &mut Vec<u8>) -> usize {
        // Words of structures lie at multiples of eight, behind their number.
        let eight = matches!(self, Item::Structs(..));
        pad(out, if eight { 8 } else { 4 }, if eight { 4 } else { 0 });
        let at = out.len();
        match self {
            Item::Text(text) => {
                out.extend((text.len() as u32).to_le_bytes());
                out.extend(text.bytes().chain([0]));
            }
            Item::Structs(count, words) => {
                out.extend((*count as u32).to_le_bytes());
                out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            }
            Item::Tables(tables) => {
                out.extend((tables.len() as u32).to_le_bytes());
                out.resize(out.len() + 4 * tables.len(), 0);
                for (i, table) in tables.iter().enumerate() {
                    let to = table.write(out);
                    point(out, at + 4 + 4 * i, to);
                }
            }
            Item::Table(fields) => return write_table(fields, out),
            _ => out.extend(self.inline()),
        }
        at
    }
}

fn write_table(fields: &[Option<Item>], out: &mut Vec<u8>) -> usize {
    let directory = out.len();
    let (mut table, mut places) = (vec![0; 4], Vec::new());
    for field in fields {
        places.push(field.as_ref().map(|item| {
            let bytes = item.inline();
            pad(&mut table, bytes.len(), 0);
            table.extend(&bytes);
            table.len() - bytes.len()
        }));
    }
    let lengths = [4 + 2 * fields.len(), table.len()].into_iter();
    let words = lengths.chain(places.iter().map(|place| place.unwrap_or(0)));
    out.extend(words.flat_map(|word| (word as u16).to_le_bytes()));
    pad(out, 8, 0);
    let at = out.len();
    // A table begins with how far before it its directory is.
    table[..4].copy_from_slice(&((at - directory) as i32).to_le_bytes());
    out.extend(table);
    for (field, place) in fields.iter().zip(places) {
        use Item::{Structs, Table, Tables, Text};
        if let (Some(item @ (Text(_) | Table(_) | Tables(_) | Structs(..))), Some(place)) =
            (field, place)
        {
            let to = item.write(out);
            point(out, at + place, to);
        }
    }
    at
}

/// Writes at a place how far behind it something is.
fn point(out: &mut [u8], at: usize, to: usize) {
    out[at..at + 4].copy_from_slice(&((to - at) as u32).to_le_bytes());
}

/// Zeros until the length is `rest` more than a multiple of `of`.
pub(super) fn pad(out: &mut Vec<u8>, of: usize, rest: usize) {
    while out.len() % of != rest {
        out.push(0);
    }
}
