//! A function's body: declarations, labels and instructions between its braces.

use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

use super::{
    argument::{self, operands, word},
    debug::Locations,
    declaration::{self, Declared},
    error::{Error, Result, excerpt},
    instruction::{Decoded, Fault, Jump, decode},
    lex::{Lexer, Token},
    operands::Operands,
    scope::{Name, Pending, Scope, Scopes, Table},
    symbols::{Symbols, index},
};
use crate::ir::{
    FunctionId, Instruction, Op, Parameter, Predicate, Register, Space, Unsupported, Variable,
    VariableId,
};

/// What a call by address expects of the function.
#[derive(Clone)]
pub(super) struct Prototype {
    pub(super) results: Vec<Parameter>,
    pub(super) parameters: Vec<Parameter>,
}

/// A body as far as it is read.
pub(super) struct Body<'a> {
    pub(super) id: FunctionId,
    pub(super) scopes: Scopes<'a>,
    pub(super) registers: Vec<Register>,
    pub(super) code: Vec<Instruction>,
    pub(super) mentioned: BTreeSet<VariableId>,
    pub(super) addressed: BTreeSet<FunctionId>,
    pub(super) prototypes: FxHashMap<&'a str, Prototype>,
    /// Where the next variable in parameter memory goes.
    pub(super) param_cursor: u64,
    pub(super) param_bytes: u64,
    pub(super) local_bytes: u64,
    tables: Vec<Table<'a>>,
    /// Instructions that look into a table.
    table_branches: Vec<(u32, usize)>,
}

/// The most bytes of parameter memory a frame may take, and of local memory a thread.
const MOST_PARAM: u64 = 1 << 20;
const MOST_LOCAL: u64 = 512 << 10;
/// All targets of all table branches of a function.
const MOST_TARGETS: usize = 1 << 20;

impl<'a> Body<'a> {
    pub(super) fn new(id: FunctionId) -> Self {
        let mut scopes = Scopes::default();
        scopes.open(0);
        Body {
            id,
            scopes,
            registers: Vec::new(),
            code: Vec::new(),
            mentioned: BTreeSet::new(),
            addressed: BTreeSet::new(),
            prototypes: FxHashMap::default(),
            param_cursor: 0,
            param_bytes: 0,
            local_bytes: 0,
            tables: Vec::new(),
            table_branches: Vec::new(),
        }
    }

    /// Makes a declaration a variable of this function; returns what stands for it.
    pub(super) fn declare_variable(
        &mut self,
        symbols: &mut Symbols<'a>,
        line: u32,
        declared: Declared<'a>,
    ) -> Result<VariableId> {
        let name = declared.name;
        let mut variable: Variable = declared.into_variable(line);
        let frame = match variable.space {
            Space::Local => Some((&mut self.local_bytes, MOST_LOCAL)),
            Space::Param => Some((&mut self.param_cursor, MOST_PARAM)),
            _ => None,
        };
        if let Some((cursor, most)) = frame {
            let offset = cursor.checked_next_multiple_of(variable.align);
            let end = offset.and_then(|offset| offset.checked_add(variable.size));
            match (offset, end) {
                (Some(offset), Some(end)) if end <= most => {
                    variable.offset = offset;
                    *cursor = end;
                }
                _ => {
                    let space = variable.space;
                    let what = format!("`{}` does not fit {space} memory", excerpt(name));
                    return Err(Error::invalid(line, what)
                        .with_hint(format!("a function has at most {most} bytes of it")));
                }
            }
        }
        self.param_bytes = self.param_bytes.max(self.param_cursor);
        variable.owner = Some(self.id);
        let id = VariableId(index(symbols.module.variables.len()));
        symbols.module.variables.push(variable);
        self.mentioned.insert(id);
        if self.scopes.declare_known(name, Name::Variable(id)) {
            Ok(id)
        } else {
            Err(twice(line, name))
        }
    }

    /// Reads up to the closing brace; the opening one is read.
    pub(super) fn read(
        &mut self,
        lexer: &mut Lexer<'a>,
        symbols: &mut Symbols<'a>,
        locations: &mut Locations<'a>,
    ) -> Result<()> {
        let mut depth = 0_usize;
        loop {
            match lexer.next()? {
                Token::Mark('{') => {
                    depth += 1;
                    if !self.scopes.open(self.param_cursor) {
                        let what = "blocks are nested too deeply";
                        return Err(Error::invalid(lexer.line(), what));
                    }
                }
                Token::Mark('}') => {
                    self.close()?;
                    if depth == 0 {
                        return self.finish();
                    }
                    depth -= 1;
                }
                Token::Mark('@') => {
                    let guard = self.guard(lexer, symbols)?;
                    let opcode = word(lexer)?;
                    self.instruction(opcode, Some(guard), lexer, symbols, locations)?;
                }
                Token::Mark(';') => {}
                Token::Word(directive) if directive.starts_with('.') => {
                    self.directive(directive, lexer, symbols, locations)?;
                }
                Token::Word(name) if lexer.peek()? == Token::Mark(':') => {
                    self.label(name, lexer)?;
                }
                Token::Word(opcode) => {
                    self.instruction(opcode, None, lexer, symbols, locations)?;
                }
                Token::End => {
                    let function = &symbols.module.functions[self.id.index()];
                    let what = format!("the body of `{}` is never closed", excerpt(&function.name));
                    return Err(Error::invalid(lexer.line(), what));
                }
                other => {
                    let what = format!("an instruction was expected, not {other}");
                    return Err(Error::invalid(lexer.line(), what));
                }
            }
        }
    }

    fn guard(&mut self, lexer: &mut Lexer<'a>, symbols: &Symbols<'a>) -> Result<Predicate> {
        let negated = lexer.peek()? == Token::Mark('!');
        if negated {
            lexer.next()?;
        }
        let name = word(lexer)?;
        let arg = if negated { argument::Arg::Not(name) } else { argument::Arg::Name(name, 0) };
        Operands { symbols, body: self }
            .predicate(&arg)
            .map_err(|fault| invalid(lexer.line(), "@", fault))
    }

    fn directive(
        &mut self,
        directive: &'a str,
        lexer: &mut Lexer<'a>,
        symbols: &mut Symbols<'a>,
        locations: &mut Locations<'a>,
    ) -> Result<()> {
        match directive {
            ".reg" => self.registers(lexer),
            ".local" | ".shared" | ".param" | ".global" | ".const" => {
                let line = lexer.line();
                let space = declaration::space(directive);
                for declared in declaration::variables(lexer, symbols, space, false)? {
                    self.declare_variable(symbols, line, declared)?;
                }
                Ok(())
            }
            ".loc" => locations.loc(lexer, symbols),
            ".file" => locations.file(lexer, symbols),
            ".pragma" => declaration::pragma(lexer),
            _ => {
                let what = format!("`{}` is not known inside a function", excerpt(directive));
                Err(Error::invalid(lexer.line(), what))
            }
        }
    }

    /// `.reg .b32 %r<5>, x;`
    fn registers(&mut self, lexer: &mut Lexer<'a>) -> Result<()> {
        let vector = declaration::vector(lexer)?;
        let ty = declaration::ty(lexer)?;
        loop {
            let name = word(lexer)?;
            let line = lexer.line();
            let mut next = lexer.next()?;
            let new = if next == Token::Mark('<') {
                let count = argument::unsigned(lexer)?;
                declaration::expect(lexer, '>')?;
                next = lexer.next()?;
                if vector > 1 {
                    let what = "numbered registers are not vectors";
                    return Err(Error::invalid(line, what).with_hint("declare them by their names"));
                }
                self.scopes.declare_family(name, count, ty)
            } else if vector > 1 {
                self.scopes.declare_vector(name, vector as usize, ty, &mut self.registers)
            } else {
                self.scopes.declare_register(name, ty)
            };
            if !new {
                return Err(twice(line, name));
            }
            match next {
                Token::Mark(',') => {}
                Token::Mark(';') => return Ok(()),
                other => {
                    let what = format!("`,` or `;` was expected, not {other}");
                    return Err(Error::invalid(lexer.line(), what));
                }
            }
        }
    }

    /// A label, or a list of labels or a prototype that has one.
    fn label(&mut self, name: &'a str, lexer: &mut Lexer<'a>) -> Result<()> {
        let line = lexer.line();
        lexer.next()?;
        let new = match lexer.peek()? {
            Token::Word(".branchtargets") => {
                lexer.next()?;
                let labels = label_list(lexer)?;
                self.tables.push(Table { labels, line, targets: Vec::new() });
                let table = self.tables.len() - 1;
                self.scopes.innermost().is_some_and(|s| s.tables.insert(name, table).is_none())
            }
            Token::Word(".callprototype") => {
                lexer.next()?;
                let prototype = prototype(lexer)?;
                self.prototypes.insert(name, prototype).is_none()
            }
            Token::Word(".calltargets") => {
                lexer.next()?;
                label_list(lexer)?;
                true
            }
            _ => {
                let here = index(self.code.len());
                self.scopes.innermost().is_some_and(|s| s.labels.insert(name, here).is_none())
            }
        };
        if new { Ok(()) } else { Err(twice(line, name)) }
    }

    fn instruction(
        &mut self,
        opcode: &'a str,
        guard: Option<Predicate>,
        lexer: &mut Lexer<'a>,
        symbols: &mut Symbols<'a>,
        locations: &Locations<'a>,
    ) -> Result<()> {
        let line = lexer.line();
        let mut args = operands(lexer)?;
        let at = locations.line(line);
        let mut found = Operands { symbols, body: self };
        found.spread(&mut args);
        let mut more = Vec::new();
        let op = match decode(opcode, &args, &mut found) {
            Ok(Decoded::Op(op)) => op,
            Ok(Decoded::Ops(ops)) => {
                more = ops;
                more.remove(0)
            }
            Ok(Decoded::Jump(jump)) => self.jump(jump, line),
            Err(Fault::Unsupported(what)) => {
                let (instruction, source) = (excerpt(opcode), at.source);
                let list = &mut symbols.module.unsupported;
                list.push(Unsupported { line, source, instruction, what });
                Op::Unsupported { index: index(list.len() - 1) }
            }
            Err(fault) => return Err(invalid(line, opcode, fault)),
        };
        let spelling = symbols.spelling(opcode);
        let inlined = locations.inlined();
        for op in core::iter::once(op).chain(more) {
            self.code.push(Instruction { guard, op, line: at, inlined, spelling });
        }
        Ok(())
    }

    /// A branch with its target left open.
    fn jump(&mut self, jump: Jump<'a>, line: u32) -> Op {
        let instruction = index(self.code.len());
        let scope = self.scopes.innermost();
        match jump {
            Jump::To { label, uniform } => {
                if let Some(scope) = scope {
                    scope.branches.push(Pending { instruction, label, line });
                }
                Op::Branch { target: 0, uniform }
            }
            Jump::Table { label, index, uniform } => {
                if let Some(scope) = scope {
                    scope.table_branches.push(Pending { instruction, label, line });
                }
                Op::BranchTable { index, targets: Box::default(), uniform }
            }
        }
    }

    /// Closes the innermost scope. Branches whose label it has not are its surroundings' now.
    fn close(&mut self) -> Result<()> {
        let Some(scope) = self.scopes.close() else {
            return Ok(());
        };
        self.param_cursor = scope.param_base;
        for &branch in &scope.branches {
            match scope.labels.get(branch.label) {
                Some(&at) => set_target(&mut self.code[branch.instruction as usize].op, at),
                None => self.defer(branch, |outer| &mut outer.branches, "label")?,
            }
        }
        for &branch in &scope.table_branches {
            match scope.tables.get(branch.label) {
                Some(&table) => self.table_branches.push((branch.instruction, table)),
                None => self.defer(branch, |outer| &mut outer.table_branches, "table")?,
            }
        }
        for &table in scope.tables.values() {
            let Table { labels, line, targets } = &mut self.tables[table];
            for label in labels {
                let target =
                    scope.labels.get(label).ok_or_else(|| missing(*line, "label", label))?;
                targets.push(*target);
            }
        }
        Ok(())
    }

    fn defer(
        &mut self,
        branch: Pending<'a>,
        list: impl for<'s> Fn(&'s mut Scope<'a>) -> &'s mut Vec<Pending<'a>>,
        what: &str,
    ) -> Result<()> {
        match self.scopes.innermost() {
            Some(outer) => {
                list(outer).push(branch);
                Ok(())
            }
            None => Err(missing(branch.line, what, branch.label)),
        }
    }

    /// Gives branches by table their targets, once all tables have theirs.
    fn finish(&mut self) -> Result<()> {
        let mut total = 0_usize;
        for &(instruction, table) in &self.table_branches {
            let Table { targets: known, line, .. } = &self.tables[table];
            total = total.saturating_add(known.len());
            if total > MOST_TARGETS {
                return Err(Error::invalid(*line, "the tables of branches are too large"));
            }
            if let Op::BranchTable { targets, .. } = &mut self.code[instruction as usize].op {
                *targets = known.as_slice().into();
            }
        }
        Ok(())
    }
}

fn set_target(op: &mut Op, at: u32) {
    if let Op::Branch { target, .. } = op {
        *target = at;
    }
}

fn missing(line: u32, what: &str, name: &str) -> Error {
    Error::invalid(line, format!("there is no {what} `{}` here", excerpt(name)))
}

pub(super) fn twice(line: u32, name: &str) -> Error {
    Error::invalid(line, format!("`{}` is declared twice", excerpt(name)))
}

fn invalid(line: u32, opcode: &str, fault: Fault) -> Error {
    match fault {
        Fault::Invalid(what, hint) => {
            Error::Invalid { line, what: format!("{}: {what}", excerpt(opcode)), hint }
        }
        Fault::Unsupported(what) => {
            let what = what.unwrap_or_else(|| "it is not known".into());
            Error::invalid(line, format!("{}: {what}", excerpt(opcode)))
        }
    }
}

/// Names up to the semicolon.
fn label_list<'a>(lexer: &mut Lexer<'a>) -> Result<Vec<&'a str>> {
    let mut labels = Vec::new();
    loop {
        labels.push(word(lexer)?);
        match lexer.next()? {
            Token::Mark(',') => {}
            Token::Mark(';') => return Ok(labels),
            other => {
                let what = format!("`,` or `;` was expected, not {other}");
                return Err(Error::invalid(lexer.line(), what));
            }
        }
    }
}

/// `(results) _ (parameters);`
fn prototype(lexer: &mut Lexer<'_>) -> Result<Prototype> {
    let results = match lexer.peek()? {
        Token::Mark('(') => declaration::parameters(lexer)?,
        _ => Vec::new(),
    };
    word(lexer)?;
    let parameters = match lexer.peek()? {
        Token::Mark('(') => declaration::parameters(lexer)?,
        _ => Vec::new(),
    };
    while let Token::Word(_) | Token::Number(_) = lexer.peek()? {
        // `.noreturn`, `.abi_preserve 8`: what a compiler may rely on.
        lexer.next()?;
    }
    declaration::expect(lexer, ';')?;
    let formal = |list: Vec<declaration::Formal<'_>>| {
        list.into_iter().map(|formal| formal.unplaced()).collect()
    };
    Ok(Prototype { results: formal(results), parameters: formal(parameters) })
}
