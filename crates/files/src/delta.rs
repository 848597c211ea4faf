//! How many lengths the delta encodings of byte strings in Parquet pages name.
//!
//! Their decoder reserves memory for that number before it has seen one of
//! them; where memory is refused, the process ends. Pages are therefore looked
//! through first. The layout: Parquet format, "Delta Encoding".

/// Values of a page that anybody has use for.
const MOST_VALUES: u64 = 1 << 26;

/// Whether the values of a `DELTA_BYTE_ARRAY` page, or with `prefixes` false
/// of a `DELTA_LENGTH_BYTE_ARRAY` page, name no more lengths than the page has
/// `values`.
pub(crate) fn is_bounded(data: &[u8], values: u64, prefixes: bool) -> bool {
    let most = values.min(MOST_VALUES);
    let lengths = if prefixes { skip_packed(data, most) } else { Some(data) };
    lengths.and_then(|rest| skip_packed(rest, most)).is_some()
}

/// What follows a block of delta-packed integers; `None` if there are more
/// than `most` of them or the data end early.
fn skip_packed(data: &[u8], most: u64) -> Option<&[u8]> {
    let mut rest = data;
    let block = varint(&mut rest)?;
    let miniblocks = usize::try_from(varint(&mut rest)?).ok()?;
    let total = varint(&mut rest)?;
    varint(&mut rest)?;
    if total > most {
        return None;
    }
    let mut left = total.saturating_sub(1);
    let each = block.checked_div(miniblocks as u64).filter(|&n| n > 0 || left == 0)?;
    while left > 0 {
        varint(&mut rest)?;
        let (widths, after) = rest.split_at_checked(miniblocks)?;
        rest = after;
        // Miniblocks that hold no value are left out, their widths are not.
        for &width in widths {
            if left == 0 {
                break;
            }
            let bits = each.checked_mul(u64::from(width))?;
            rest = rest.get(usize::try_from(bits.div_ceil(8)).ok()?..)?;
            left = left.saturating_sub(each);
        }
    }
    Some(rest)
}

/// Takes an unsigned LEB128 integer off the front.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 128 a block, 4 miniblocks, `total` values, the first 2, all alike.
    fn alike(total: u8) -> Vec<u8> {
        let mut data = vec![0x80, 0x01, 4, total, 4];
        if total > 1 {
            data.extend([0, 0, 0, 0, 0]);
        }
        data
    }

    #[test]
    fn honest_counts_pass_and_others_do_not() {
        let both = [alike(3), alike(3)].concat();
        assert!(is_bounded(&both, 3, true));
        assert!(!is_bounded(&both, 2, true));
        assert!(is_bounded(&alike(1), 1, false));
        // The second count lies.
        assert!(!is_bounded(&[alike(3), alike(100)].concat(), 3, true));
    }

    #[test]
    fn packed_miniblocks_are_skipped() {
        // 33 values need two miniblocks of 32, here of 3 and of 1 bits.
        let mut data = vec![0x80, 0x01, 4, 34, 0, 0, 3, 1, 0, 0];
        data.extend([0xff; 12 + 4]);
        data.push(42);
        assert_eq!(skip_packed(&data, 34), Some(&[42][..]));
        assert_eq!(skip_packed(&data[..20], 34), None);
    }

    #[test]
    fn nothing_is_trusted() {
        for data in [&[][..], &[0x80; 20], &[0, 0, 5, 0, 0], &[1, 4, 5, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(skip_packed(data, 10), None, "{data:?}");
        }
    }
}
