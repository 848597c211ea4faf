//! The directives of a module: its head, its variables and its functions.

use std::collections::BTreeMap;

use super::{
    argument::{unsigned, word},
    body::{Body, twice},
    debug::Locations,
    declaration::{self, Formal},
    error::{Error, Result, excerpt},
    lex::{Lexer, Token},
    scope::{Name, new_register},
    symbols::{Global, Symbols, index},
};
use crate::ir::{
    Builtin, Callee, Function, FunctionId, FunctionKind, LaunchBounds, Line, Module, Op, Parameter,
    ParameterPlace, Unsupported, VariableId,
};

/// The first version that is read. There is no last one: what a later version brings is judged by instruction.
const FIRST_VERSION: (u32, u32) = (4, 0);
/// A kernel has at most this many bytes of parameters.
const MOST_ARGUMENTS: u64 = 32_764;

pub(super) fn read(text: &str) -> Result<Module> {
    if u32::try_from(text.len()).is_err() {
        return Err(Error::invalid(1, "the text is longer than 4 GiB"));
    }
    let mut reader = Reader {
        lexer: Lexer::new(text),
        symbols: Symbols::default(),
        locations: Locations::default(),
        defined: Vec::new(),
        external: BTreeMap::new(),
    };
    reader.head()?;
    while reader.directive()? {}
    reader.finish()
}

struct Reader<'a> {
    lexer: Lexer<'a>,
    symbols: Symbols<'a>,
    locations: Locations<'a>,
    /// Which functions have a body, in step with the module's.
    defined: Vec<bool>,
    /// Variables that another module would have to bring.
    external: BTreeMap<VariableId, u32>,
}

/// How a function is introduced.
struct Head<'a> {
    name: &'a str,
    line: u32,
    kernel: bool,
    results: Vec<Formal<'a>>,
    parameters: Vec<Formal<'a>>,
    bounds: LaunchBounds,
}

impl<'a> Reader<'a> {
    fn invalid(&self, what: impl Into<String>) -> Error {
        Error::invalid(self.lexer.line(), what)
    }

    /// `.version`, `.target` and `.address_size`, which come first.
    fn head(&mut self) -> Result<()> {
        self.head_directive(".version")?;
        self.symbols.module.version = self.version()?;
        self.head_directive(".target")?;
        loop {
            let target = word(&mut self.lexer)?;
            self.symbols.module.target.push(target.to_string());
            if self.lexer.peek()? != Token::Mark(',') {
                break;
            }
            self.lexer.next()?;
        }
        if !self.symbols.module.target[0].starts_with("sm_") {
            return Err(self
                .invalid("the target is not an architecture")
                .with_hint("expected sm_75, sm_90 or similar"));
        }
        self.head_directive(".address_size")?;
        let size = unsigned(&mut self.lexer)?;
        if size != 64 {
            return Err(self
                .invalid(format!("addresses of {size} bits are not supported"))
                .with_hint("compile for 64 bits"));
        }
        self.symbols.module.address_size = 64;
        Ok(())
    }

    fn head_directive(&mut self, wanted: &str) -> Result<()> {
        match self.lexer.next()? {
            Token::Word(found) if found == wanted => Ok(()),
            other => Err(self
                .invalid(format!("`{wanted}` was expected, not {other}"))
                .with_hint("PTX begins with .version, .target and .address_size; is this PTX?")),
        }
    }

    fn version(&mut self) -> Result<(u32, u32)> {
        let token = self.lexer.next()?;
        let numbers = match token {
            Token::Number(text) => text.split_once('.'),
            _ => None,
        };
        let version = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match version {
            Some(version) if version >= FIRST_VERSION => Ok(version),
            _ => Err(self
                .invalid(format!("PTX version {token} is not supported"))
                .with_hint("versions from 4.0 on are")),
        }
    }

    /// One directive; false at the end of the text.
    fn directive(&mut self) -> Result<bool> {
        let mut external = false;
        loop {
            let token = self.lexer.next()?;
            let line = self.lexer.line();
            let Token::Word(directive) = token else {
                if token == Token::End {
                    return Ok(false);
                }
                return Err(self.invalid(format!("a directive was expected, not {token}")));
            };
            match directive {
                ".extern" => {
                    external = true;
                    continue;
                }
                ".visible" | ".weak" | ".common" => continue,
                ".file" => self.locations.file(&mut self.lexer, &mut self.symbols)?,
                ".loc" => self.locations.loc(&mut self.lexer, &mut self.symbols)?,
                ".section" => self.locations.section(&mut self.lexer)?,
                ".pragma" => declaration::pragma(&mut self.lexer)?,
                ".global" | ".const" | ".shared" => self.variables(directive, line, external)?,
                ".entry" | ".func" => self.function(directive == ".entry", line)?,
                _ => {
                    let what = format!("the directive `{}` is not supported", excerpt(directive));
                    return Err(self.invalid(what));
                }
            }
            return Ok(true);
        }
    }

    fn variables(&mut self, directive: &str, line: u32, external: bool) -> Result<()> {
        let space = declaration::space(directive);
        let list = declaration::variables(&mut self.lexer, &self.symbols, space, external)?;
        for declared in list {
            let (name, external) = (declared.name, declared.external);
            let variable = declared.into_variable(line);
            let id = match self.symbols.global(name) {
                // An extern declaration and its definition name one variable.
                Some(Global::Variable(id)) if self.external.contains_key(&id) => {
                    if !external {
                        self.external.remove(&id);
                        self.symbols.module.variables[id.index()] = variable;
                    }
                    continue;
                }
                Some(_) => return Err(twice(line, name)),
                None => VariableId(index(self.symbols.module.variables.len())),
            };
            if external && !variable.dynamic {
                self.external.insert(id, line);
            }
            self.symbols.module.variables.push(variable);
            self.symbols.declare(name, Global::Variable(id));
        }
        Ok(())
    }

    fn function(&mut self, kernel: bool, line: u32) -> Result<()> {
        let head = self.function_head(kernel, line)?;
        let defined = self.lexer.next()? == Token::Mark('{');
        let (id, new) = self.declare(&head)?;
        let (name, bounds) = (head.name, head.bounds.clone());
        let mut body = Body::new(id);
        let parameters = self.formals(head.parameters, &mut body)?;
        let arguments = body.param_cursor;
        if kernel && arguments > MOST_ARGUMENTS {
            let what = format!("`{}` takes {arguments} bytes of parameters", excerpt(name));
            return Err(Error::invalid(line, what)
                .with_hint(format!("a launch passes at most {MOST_ARGUMENTS}")));
        }
        let results = self.formals(head.results, &mut body)?;
        if !new {
            self.check_agreement(id, &parameters, &results, line)?;
        }
        let function = &mut self.symbols.module.functions[id.index()];
        function.parameters = parameters;
        function.results = results;
        function.bounds = bounds;
        if defined {
            self.locations.begin_function();
            body.read(&mut self.lexer, &mut self.symbols, &mut self.locations)?;
            self.defined[id.index()] = true;
        }
        let function = &mut self.symbols.module.functions[id.index()];
        function.param_bytes = body.param_bytes;
        function.local_bytes = body.local_bytes;
        function.registers = body.registers;
        function.code = body.code;
        function.variables = body.mentioned.into_iter().collect();
        function.addressed = body.addressed.into_iter().collect();
        Ok(())
    }

    /// Up to the opening brace, or the semicolon of a declaration; that is not read.
    fn function_head(&mut self, kernel: bool, line: u32) -> Result<Head<'a>> {
        let results = match self.lexer.peek()? {
            Token::Mark('(') if !kernel => declaration::parameters(&mut self.lexer)?,
            _ => Vec::new(),
        };
        let name = word(&mut self.lexer)?;
        let parameters = match self.lexer.peek()? {
            Token::Mark('(') => declaration::parameters(&mut self.lexer)?,
            _ => Vec::new(),
        };
        let mut bounds = LaunchBounds::default();
        loop {
            match self.lexer.peek()? {
                Token::Mark('{' | ';') => {
                    return Ok(Head { name, line, kernel, results, parameters, bounds });
                }
                Token::Word(directive) => {
                    self.lexer.next()?;
                    self.bound(directive, &mut bounds)?;
                }
                other => {
                    let what = format!("the body of a function was expected, not {other}");
                    return Err(self.invalid(what));
                }
            }
        }
    }

    fn bound(&mut self, directive: &str, bounds: &mut LaunchBounds) -> Result<()> {
        match directive {
            ".reqntid" => bounds.required_block = Some(self.shape()?),
            ".maxntid" => bounds.largest_block = Some(self.shape()?),
            ".reqnctapercluster" => bounds.required_cluster = Some(self.shape()?),
            ".minnctapersm" => bounds.blocks_per_multiprocessor = Some(self.count()?),
            ".maxnctapersm" => drop(self.count()?),
            ".maxnreg" => bounds.registers = Some(self.count()?),
            ".maxclusterrank" => bounds.largest_cluster = Some(self.count()?),
            ".explicitcluster" => bounds.explicit_cluster = true,
            ".noreturn" | ".blocksareclusters" => {}
            ".pragma" => declaration::pragma(&mut self.lexer)?,
            // What else stands here steers the compiler: a word, and numbers perhaps.
            _ if directive.starts_with('.') => {
                while let Token::Number(_) | Token::Mark(',') = self.lexer.peek()? {
                    self.lexer.next()?;
                }
            }
            _ => return Err(self.invalid(format!("`{}` was not expected", excerpt(directive)))),
        }
        Ok(())
    }

    fn count(&mut self) -> Result<u32> {
        let count = unsigned(&mut self.lexer)?;
        u32::try_from(count).map_err(|_| self.invalid(format!("{count} is too large")))
    }

    fn shape(&mut self) -> Result<[u32; 3]> {
        let mut shape = [1; 3];
        for (axis, extent) in shape.iter_mut().enumerate() {
            if axis > 0 {
                if self.lexer.peek()? != Token::Mark(',') {
                    break;
                }
                self.lexer.next()?;
            }
            *extent = self.count()?;
        }
        Ok(shape)
    }

    /// The function's place in the module: a new one, or that of its declaration; whether it is new.
    fn declare(&mut self, head: &Head<'a>) -> Result<(FunctionId, bool)> {
        let kind = if head.kernel { FunctionKind::Kernel } else { FunctionKind::Device };
        if let Some(known) = self.symbols.global(head.name) {
            return match known {
                Global::Function(id)
                    if !self.defined[id.index()]
                        && self.symbols.module.functions[id.index()].kind == kind =>
                {
                    Ok((id, false))
                }
                _ => Err(twice(head.line, head.name)),
            };
        }
        let id = FunctionId(index(self.symbols.module.functions.len()));
        self.symbols.module.functions.push(Function {
            name: head.name.to_string(),
            kind,
            line: Line { ptx: head.line, source: None },
            parameters: Vec::new(),
            results: Vec::new(),
            param_bytes: 0,
            local_bytes: 0,
            registers: Vec::new(),
            variables: Vec::new(),
            addressed: Vec::new(),
            code: Vec::new(),
            bounds: LaunchBounds::default(),
        });
        self.defined.push(false);
        self.symbols.declare(head.name, Global::Function(id));
        Ok((id, true))
    }

    /// Gives formal parameters their registers or their places in the frame.
    fn formals(&mut self, list: Vec<Formal<'a>>, body: &mut Body<'a>) -> Result<Vec<Parameter>> {
        let line = self.lexer.line();
        let mut parameters = Vec::with_capacity(list.len());
        for formal in list {
            let (place, offset) = if formal.in_register {
                let reg = new_register(&mut body.registers, formal.name, formal.ty);
                if !body.scopes.declare_known(formal.name, Name::Register(reg)) {
                    return Err(twice(line, formal.name));
                }
                (ParameterPlace::Register(reg), 0)
            } else {
                let id = body.declare_variable(&mut self.symbols, line, formal.declared())?;
                let offset = self.symbols.module.variables[id.index()].offset;
                (ParameterPlace::Memory(id), offset)
            };
            parameters.push(formal.placed(place, offset));
        }
        Ok(parameters)
    }

    /// A definition must take and give what its declaration, which calls were checked against, said.
    fn check_agreement(
        &self,
        id: FunctionId,
        parameters: &[Parameter],
        results: &[Parameter],
        line: u32,
    ) -> Result<()> {
        let known = &self.symbols.module.functions[id.index()];
        let same = |a: &[Parameter], b: &[Parameter]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.bytes() == b.bytes())
        };
        if same(&known.parameters, parameters) && same(&known.results, results) {
            return Ok(());
        }
        let what = format!("`{}` was declared with other parameters", excerpt(&known.name));
        Err(Error::invalid(line, what))
    }

    fn finish(mut self) -> Result<Module> {
        if let Some((id, line)) = self.external.first_key_value() {
            let name = &self.symbols.module.variables[id.index()].name;
            let what = format!("the variable `{}` is not defined", excerpt(name));
            return Err(
                Error::invalid(*line, what).with_hint("link the modules before they are run")
            );
        }
        self.resolve_builtins();
        self.locations.finish(&mut self.symbols);
        Ok(self.symbols.module)
    }

    /// Functions without a body belong to the device's runtime, or to a module that is linked later: calling them is not supported.
    fn resolve_builtins(&mut self) {
        let Module { functions, unsupported, spellings, .. } = &mut self.symbols.module;
        for (function, defined) in functions.iter_mut().zip(&self.defined) {
            if !defined && let Some(builtin) = Builtin::from_name(&function.name) {
                function.kind = FunctionKind::Builtin(builtin);
            }
        }
        let missing: Vec<Option<String>> = functions
            .iter()
            .zip(&self.defined)
            .map(|(f, defined)| {
                let there = *defined || matches!(f.kind, FunctionKind::Builtin(_));
                (!there).then(|| format!("the function `{}` is not defined", excerpt(&f.name)))
            })
            .collect();
        if missing.iter().all(Option::is_none) {
            return;
        }
        for instruction in functions.iter_mut().flat_map(|f| &mut f.code) {
            let Op::Call { callee: Callee::Function(id), .. } = &instruction.op else { continue };
            let Some(what) = &missing[id.index()] else { continue };
            let Line { ptx: line, source } = instruction.line;
            let opcode = excerpt(&spellings[instruction.spelling as usize]);
            let what = Some(what.clone());
            unsupported.push(Unsupported { line, source, instruction: opcode, what });
            instruction.op = Op::Unsupported { index: index(unsupported.len() - 1) };
        }
        // A list in the order of the text, with the instructions' numbers to match.
        let mut order: Vec<u32> = (0..index(unsupported.len())).collect();
        order.sort_by_key(|&at| unsupported[at as usize].line);
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old as usize] = index(new);
        }
        unsupported.sort_by_key(|u| u.line);
        for instruction in functions.iter_mut().flat_map(|f| &mut f.code) {
            if let Op::Unsupported { index } = &mut instruction.op {
                *index = place[*index as usize];
            }
        }
    }
}
