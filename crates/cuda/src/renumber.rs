//! Registers and labels of PTX by relative numbers, as archives of kernels have them.
//!
//! A compiler numbers registers in the order of their use, so that two copies of the same code differ in
//! nearly every line. Archives count from the number of the same name in the last line before that has one
//! (from the first one of that line): copies are equal then, and pack to half as much.
//! `tools/kernels.py` writes this form.

/// Names of registers and labels, what their numbers are counted from, and the number that comes
/// first in this line.
#[derive(Default)]
struct Names<'a>(Vec<(&'a str, i64, Option<i64>)>);

impl<'a> Names<'a> {
    /// The number that a relative one stands for; `None` if there is no such number.
    fn absolute(&mut self, name: &'a str, relative: i64) -> Option<i64> {
        let known = self.0.iter().position(|known| known.0 == name);
        let at = known.unwrap_or_else(|| {
            self.0.push((name, 0, None));
            self.0.len() - 1
        });
        let (_, base, first) = &mut self.0[at];
        let number = base.checked_add(relative)?;
        first.get_or_insert(number);
        Some(number)
    }

    fn end_line(&mut self) {
        for (_, base, first) in &mut self.0 {
            *base = first.take().unwrap_or(*base);
        }
    }
}

/// The text whose registers and labels have these relative numbers; `None` if it is damaged.
pub(crate) fn absolute(relative: &str) -> Option<String> {
    let bytes = relative.as_bytes();
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
    let mut names = Names::default();
    // Bytes that were looked at, and how many of them `text` has.
    let (mut at, mut copied) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        if byte == b'\n' {
            names.end_line();
        }
        if !matches!(byte, b'%' | b'$') {
            at += 1;
            continue;
        }
        let end = at + name_len(&bytes[at..]);
        let number = number_len(&bytes[end..]);
        if end > at + 1 && number > 0 {
            let name = &relative[at..end];
            let found = names.absolute(name, relative[end..end + number].parse().ok()?)?;
            text.push_str(&relative[copied..end]);
            text.push_str(&found.to_string());
            copied = end + number;
        }
        at = end + number;
    }
    text.push_str(&relative[copied..]);
    Some(text)
}

/// The length of a register's name, `%` and letters, or of a label's, `$L__BB`, digits and `_`,
/// without its number; 1 if there is none.
fn name_len(text: &[u8]) -> usize {
    let run = |text: &[u8], is: fn(&u8) -> bool| text.iter().take_while(|b| is(b)).count();
    if let Some(label) = text.strip_prefix(b"$L__BB") {
        let digits = run(label, u8::is_ascii_digit);
        let is_label = digits > 0 && label.get(digits) == Some(&b'_');
        return if is_label { "$L__BB".len() + digits + 1 } else { 1 };
    }
    text.strip_prefix(b"%").map_or(1, |name| 1 + run(name, u8::is_ascii_lowercase))
}

/// The length of a number with its sign; 0 if there is none.
fn number_len(text: &[u8]) -> usize {
    let sign = usize::from(text.starts_with(b"-"));
    let digits = text[sign..].iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 { 0 } else { sign + digits }
}

#[cfg(test)]
mod tests {
    use super::absolute;

    #[test]
    fn numbers_are_counted_from_the_line_before() {
        // As `tools/kernels.py` writes it.
        let relative = "add.s32 \t%r7, %r5, %rd0;\n@%p1 bra \t$L__BB0_3;\n\
                        mov.u32 \t%r1, %tid.x, %r-2;\n$L__BB0_-1: [%rd0+-8] %r$5 $L__BBx %clock64\n";
        let text = "add.s32 \t%r7, %r5, %rd0;\n@%p1 bra \t$L__BB0_3;\n\
                    mov.u32 \t%r8, %tid.x, %r5;\n$L__BB0_2: [%rd0+-8] %r$5 $L__BBx %clock64\n";
        assert_eq!(absolute(relative).as_deref(), Some(text));
        assert_eq!(absolute("%r1, %é$").as_deref(), Some("%r1, %é$"));
        assert_eq!(absolute(""), Some(String::new()));
    }

    #[test]
    fn numbers_beyond_64_bits_are_damage() {
        assert_eq!(absolute("%r9223372036854775807\n%r1"), None);
        assert_eq!(absolute("%r92233720368547758070"), None);
    }
}
