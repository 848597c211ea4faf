//! Bytes that a thread has on their way at once: loads from global memory whose values nothing has used yet.
//!
//! A thread goes on behind a load until an instruction needs its value. So what counts is the order of instructions in the text, which the
//! compiler keeps: registers that were loaded and not read yet. A copy of such a register waits no less.

use std::collections::BTreeMap;

/// The most bytes on their way at any place in a kernel's text.
pub(super) fn bytes_in_flight(ptx: &str, kernel: &str) -> u64 {
    let mut waiting: BTreeMap<&str, u64> = BTreeMap::new();
    let mut most = 0;
    for line in body(ptx, kernel) {
        let line = line.split("//").next().unwrap_or("").trim().trim_end_matches(';');
        // A guard in front waits for its own register.
        let (guard, line) = match line.strip_prefix('@') {
            Some(rest) => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
            None => ("", line),
        };
        let (opcode, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let registers =
            || operands.split(|c: char| " \t,{}[]()+-|".contains(c)).filter(|r| r.starts_with('%'));
        let written = match operands.trim_start().strip_prefix('{') {
            Some(vector) => vector.split('}').next().map_or(0, |all| all.split(',').count()),
            None => 1,
        };
        waiting.remove(guard.trim_start_matches('!'));
        if let Some(bytes) = load(opcode) {
            for register in registers().skip(written) {
                waiting.remove(register);
            }
            waiting.extend(registers().take(written).map(|register| (register, bytes)));
        } else if opcode.starts_with("mov.") {
            let mut all = registers();
            let (to, from) = (all.next(), all.next());
            let bytes = from.and_then(|from| waiting.remove(from));
            match (to, bytes) {
                (Some(to), Some(bytes)) => _ = waiting.insert(to, bytes),
                (Some(to), None) => _ = waiting.remove(to),
                (None, _) => {}
            }
        } else {
            for register in registers() {
                waiting.remove(register);
            }
        }
        most = most.max(waiting.values().sum());
    }
    most
}

/// Bytes that a load from global memory brings to each register; nothing of other instructions.
fn load(opcode: &str) -> Option<u64> {
    let parts = opcode.strip_prefix("ld.")?;
    if !parts.split('.').any(|part| part == "global") {
        return None;
    }
    let bits: u64 =
        parts.rsplit('.').next()?.trim_start_matches(char::is_alphabetic).parse().ok()?;
    Some(bits / 8)
}

/// The lines of a kernel between its braces.
fn body<'a>(ptx: &'a str, kernel: &'a str) -> impl Iterator<Item = &'a str> {
    let begins = move |line: &&str| {
        let name = line.split(".entry").nth(1).map(|rest| rest.trim_start());
        name.is_none_or(|name| name.split('(').next().map(str::trim_end) != Some(kernel))
    };
    ptx.lines().skip_while(begins).skip(1).take_while(|line| !line.starts_with('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> u64 {
        bytes_in_flight(
            &format!(
                ".visible .entry other()\n{{\nld.global.u64 %rd9, [%rd1];\n}}\n.visible .entry sum(\n)\n{{\n{text}\n}}\n"
            ),
            "sum",
        )
    }

    #[test]
    fn loads_wait_until_something_uses_them() {
        let one = "ld.global.u32 %r1, [%rd1];\nadd.s32 %r3, %r3, %r1;\n";
        assert_eq!(of(&one.repeat(3)), 4);
        assert_eq!(
            of(
                "ld.global.u32 %r1, [%rd1];\nld.global.nc.f64 %fd2, [%rd1+8];\nadd.s32 %r3, %r1, %r2;"
            ),
            12
        );
        assert_eq!(
            of("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];\nadd.s32 %r9, %r1, %r2;"),
            16
        );
        // An address that is loaded must have come.
        assert_eq!(of("ld.global.u64 %rd2, [%rd1];\nld.global.u32 %r1, [%rd2];"), 8);
        // Shared memory and parameters are near.
        assert_eq!(of("ld.shared.u32 %r1, [%r2];\nld.param.u64 %rd1, [p];"), 0);
        assert_eq!(of(""), 0);
    }

    #[test]
    fn copies_and_guards() {
        assert_eq!(
            of("ld.global.u32 %r1, [%rd1];\nmov.u32 %r2, %r1;\nld.global.u32 %r1, [%rd3];"),
            8
        );
        assert_eq!(
            of("ld.global.u32 %r1, [%rd1];\nmov.u32 %r1, 0;\nld.global.u32 %r2, [%rd3];"),
            4
        );
        assert_eq!(
            of("@%p1 ld.global.u32 %r1, [%rd1];\n@!%p2 bra $L;\nld.global.u32 %r2, [%rd3];"),
            8
        );
        // Loads of either side of a branch are one load.
        assert_eq!(
            of("ld.global.u32 %r1, [%rd1];\nbra.uni $L;\n$M:\nld.global.u32 %r1, [%rd2];"),
            4
        );
    }
}
