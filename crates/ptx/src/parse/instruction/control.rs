//! Branches, calls, and what ends or delays a thread.

use super::Fault;
use crate::{
    ir::{Argument, Callee, FunctionKind, Op, Operand, Parameter, Type},
    parse::{
        argument::Arg,
        error::excerpt,
        operands::{Operands, constant, exactly, expected},
        suffix::Opcode,
        symbols::Global,
    },
};

/// A branch whose target is a label so far.
pub(in crate::parse) enum Jump<'a> {
    /// `bra`.
    To { label: &'a str, uniform: bool },
    /// `brx.idx`.
    Table { label: &'a str, index: Operand, uniform: bool },
}

pub(super) fn jump<'a>(
    mut op: Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Jump<'a>, Fault> {
    let uniform = op.take("uni");
    let jump = if op.name == "bra" {
        match exactly(args)? {
            [Arg::Name(label, 0)] => Jump::To { label, uniform },
            [other] => return Err(expected("a label", other)),
        }
    } else {
        op.expect(&[("idx", ())])?;
        match exactly(args)? {
            [index, Arg::Name(label, 0)] => {
                Jump::Table { label, index: o.src(index, Type::U32)?, uniform }
            }
            [_, other] => return Err(expected("the label of a table", other)),
        }
    };
    op.finish()?;
    Ok(jump)
}

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    match op.name {
        "call" => return call(op, args, o),
        "nanosleep" => {
            let ty = op.ty(&[Type::U32])?;
            let [a] = exactly(args)?;
            return Ok(Op::Sleep { a: o.src(a, ty)? });
        }
        "pmevent" => {
            op.take("mask");
            let [event] = exactly(args)?;
            constant(event)?;
            return Ok(Op::Hint);
        }
        "setmaxnreg" => {
            op.expect(&[("inc", ()), ("dec", ())])?;
            op.expect(&[("sync", ())])?;
            op.expect(&[("aligned", ())])?;
            op.ty(&[Type::U32])?;
            let [count] = exactly(args)?;
            constant(count)?;
            return Ok(Op::Hint);
        }
        _ => {}
    }
    let [] = exactly(args)?;
    match op.name {
        "ret" => {
            op.take("uni");
            Ok(Op::Return)
        }
        "exit" => Ok(Op::Exit),
        "trap" => Ok(Op::Trap),
        "brkpt" => Ok(Op::Breakpoint),
        _ => {
            let wait = op.expect(&[("wait", true), ("launch_dependents", false)])?;
            Ok(Op::GridDependency { wait })
        }
    }
}

/// `call (results), callee, (arguments), prototype`, of which only the callee must be there.
fn call<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let uniform = op.take("uni");
    let (results, rest) = match args {
        [Arg::List(results), rest @ ..] => (&results[..], rest),
        rest => (&[][..], rest),
    };
    let (callee, rest) = match rest {
        [Arg::Name(name, 0), rest @ ..] => (*name, rest),
        [other, ..] => return Err(expected("a function", other)),
        [] => return Err(Fault::invalid("a function is missing")),
    };
    let (arguments, rest) = match rest {
        [Arg::List(arguments), rest @ ..] => (&arguments[..], rest),
        rest => (&[][..], rest),
    };
    let prototype = match rest {
        [] => None,
        [Arg::Name(name, 0)] => Some(*name),
        _ => return Err(Fault::invalid("it has too many operands")),
    };
    match o.symbols.global(callee) {
        Some(Global::Function(id)) => {
            // Borrowed from the symbols, not from the operands.
            let symbols = o.symbols;
            let function = &symbols.module.functions[id.index()];
            if function.kind == FunctionKind::Kernel {
                let what =
                    format!("`{}` is a kernel, which is launched, not called", excerpt(callee));
                return Err(Fault::invalid(what));
            }
            let results = wired(results, &function.results, "results", o)?;
            let arguments = wired(arguments, &function.parameters, "arguments", o)?;
            Ok(Op::Call { callee: Callee::Function(id), results, arguments, uniform })
        }
        _ => {
            let address = Arg::Name(callee, 0);
            let callee = match o.src(&address, Type::U64)? {
                reg @ Operand::Reg(_) => Callee::Indirect(reg),
                _ => return Err(expected("a function", &address)),
            };
            let prototype = prototype
                .and_then(|name| o.body.prototypes.get(name).cloned())
                .ok_or_else(|| Fault::invalid("a call by address needs a .callprototype"))?;
            let results = wired(results, &prototype.results, "results", o)?;
            let arguments = wired(arguments, &prototype.parameters, "arguments", o)?;
            Ok(Op::Call { callee, results, arguments, uniform })
        }
    }
}

/// Checks what is handed over against what the function takes.
fn wired<'a>(
    args: &[Arg<'a>],
    formal: &[Parameter],
    what: &str,
    o: &mut Operands<'_, 'a>,
) -> Result<Box<[Argument]>, Fault> {
    if args.len() != formal.len() {
        let what = format!("the function has {} {what}, not {}", formal.len(), args.len());
        return Err(Fault::invalid(what));
    }
    args.iter().zip(formal).map(|(arg, formal)| wire(arg, formal, o)).collect()
}

fn wire<'a>(
    arg: &Arg<'a>,
    formal: &Parameter,
    o: &mut Operands<'_, 'a>,
) -> Result<Argument, Fault> {
    if let Arg::Name(name, 0) = *arg
        && let Ok(variable) = o.variable(name)
    {
        let variable_size = o.symbols.module.variables[variable.index()].size;
        if variable_size != formal.bytes() {
            let what = format!(
                "`{}` has {variable_size} bytes where the function has {}",
                excerpt(name),
                formal.bytes()
            );
            return Err(Fault::invalid(what));
        }
        return Ok(Argument::Memory(variable));
    }
    if formal.length.is_some() {
        return Err(expected("a variable in parameter memory", arg));
    }
    Ok(Argument::Value(o.src(arg, formal.ty)?))
}
