//! What the directory and the members' own headers have alike: names and extra fields.

use super::directory::number;

/// The characters of the upper half of code page 437, in which names are that are not
/// marked as UTF-8.
const UPPER: &str = "\
    ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
    └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// A name as text.
///
/// # Errors
/// A name that is marked as UTF-8 and is none.
pub(super) fn decoded(name: &[u8], utf8: bool) -> Result<String, &'static str> {
    if utf8 {
        return String::from_utf8(name.to_vec())
            .map_err(|_| "a name is marked as UTF-8, and is none");
    }
    let char = |&byte: &u8| match byte {
        0..0x80 => char::from(byte),
        _ => UPPER.chars().nth(usize::from(byte - 0x80)).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    Ok(name.iter().map(char).collect())
}

/// The extra fields of a header.
pub(super) struct Extra<'a>(pub(super) &'a [u8]);

/// Numbers too large for the header itself.
pub(super) struct Zip64<'a>(Option<&'a [u8]>);

impl<'a> Extra<'a> {
    /// The field of zip64.
    ///
    /// # Errors
    /// Fields that reach beyond the header, or two of this kind.
    pub(super) fn zip64(&self) -> Result<Zip64<'a>, &'static str> {
        let (mut rest, mut found) = (self.0, None);
        // Programs that align data leave a few bytes that are no field.
        while let Some((head, behind)) = rest.split_at_checked(4) {
            let len = number(head, 2, 2) as usize;
            let (field, behind) =
                behind.split_at_checked(len).ok_or("an extra field reaches beyond its header")?;
            if head[..2] == [1, 0] && found.replace(field).is_some() {
                return Err("a header has two zip64 fields");
            }
            rest = behind;
        }
        Ok(Zip64(found))
    }
}

impl Zip64<'_> {
    /// The next number of so many bytes.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn take(&mut self, len: usize) -> Result<u64, &'static str> {
        let field = self.0.and_then(|field| field.split_at_checked(len));
        let (value, rest) = field.ok_or("a header lacks its zip64 sizes")?;
        self.0 = Some(rest);
        Ok(number(value, 0, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_the_code_page_or_utf8() {
        assert_eq!(UPPER.chars().count(), 128);
        assert_eq!(decoded(b"w\x84\xff", false).unwrap(), "wä\u{a0}");
        assert_eq!(decoded("wä".as_bytes(), true).unwrap(), "wä");
        assert!(decoded(b"w\x84", true).is_err());
    }
}
