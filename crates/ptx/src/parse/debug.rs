//! `.file`, `.loc` and `.section`: which line of the source an instruction comes from.

use std::collections::HashMap;

use super::{
    argument::{unsigned, word},
    declaration::expect,
    error::{Error, Result},
    lex::{Lexer, Token},
    symbols::{Symbols, index},
};
use crate::ir::{Inlined, Instruction, Line};
use rustc_hash::FxHashMap;

/// Whether a file came with a compiler, a toolkit or a package, by where it lies: nobody looks for a fault of his own there.
fn is_of_library(file: &str) -> bool {
    // Folders of packages and of toolkits, wherever they are; compilers at run time name headers as programs include them.
    const FOLDERS: [&str; 7] = [
        "site-packages",
        "dist-packages",
        "cccl",
        "cub",
        "thrust",
        "libcudacxx",
        "cooperative_groups",
    ];
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    let is_under = |first: &str, second: &str| {
        let mut behind = parts.iter().skip_while(|&&part| part != first).skip(1);
        behind.any(|&part| part == second)
    };
    let name = parts.last().copied().unwrap_or_default();
    file.starts_with("/usr/")
        || file.starts_with("cuda/std/")
        || file.starts_with("cuda/__")
        || parts[..parts.len() - 1].iter().any(|part| FOLDERS.contains(part))
        // A toolkit of Conda's.
        || is_under("targets", "include")
        || name == "cooperative_groups.h"
        || name.ends_with("_intrinsics.hpp")
        || ["cuda_fp16.hpp", "cuda_bf16.hpp", "cuda_fp8.hpp"].contains(&name)
}

/// A place in the source: file, line, column.
type Place = (u32, u32, u32);

/// Where the text says that it is.
#[derive(Default)]
pub(super) struct Locations<'a> {
    /// Files have numbers that need not be dense, and their names come last.
    files: HashMap<u64, u32>,
    source: Option<(u32, u32)>,
    inlined: Option<u32>,
    /// Which inlined function the text was in, the last time it was at a place.
    seen: HashMap<Place, Option<u32>>,
    known: HashMap<(Option<&'a str>, Place, Option<u32>), u32>,
    /// The labels of the names of inlined functions.
    labels: Vec<Option<&'a str>>,
    /// Where in a section of texts each label stands.
    texts: HashMap<&'a str, String>,
}

impl<'a> Locations<'a> {
    /// Forgets where the last function ended.
    pub(super) fn begin_function(&mut self) {
        self.source = None;
        self.inlined = None;
        self.seen = HashMap::new();
    }

    pub(super) fn line(&self, ptx: u32) -> Line {
        Line { ptx, source: self.source }
    }

    pub(super) fn inlined(&self) -> Option<u32> {
        self.inlined
    }

    fn file_index(&mut self, number: u64, symbols: &mut Symbols<'a>) -> u32 {
        let files = &mut symbols.module.files;
        *self.files.entry(number).or_insert_with(|| {
            files.push(String::new());
            index(files.len() - 1)
        })
    }

    /// `.file 1 "name"`, with a time and a size or without.
    pub(super) fn file(&mut self, lexer: &mut Lexer<'a>, symbols: &mut Symbols<'a>) -> Result<()> {
        let number = unsigned(lexer)?;
        let Token::Text(name) = lexer.next()? else {
            return Err(Error::invalid(lexer.line(), "the name of a file was expected"));
        };
        let file = self.file_index(number, symbols);
        symbols.module.files[file as usize] = name.to_string();
        while lexer.peek()? == Token::Mark(',') {
            lexer.next()?;
            unsigned(lexer)?;
        }
        Ok(())
    }

    /// `.loc file line column`, and for inlined code `, function_name label, inlined_at file line column`.
    pub(super) fn loc(&mut self, lexer: &mut Lexer<'a>, symbols: &mut Symbols<'a>) -> Result<()> {
        let place = self.place(lexer, symbols)?;
        let mut inlined = None;
        let mut name = None;
        while lexer.peek()? == Token::Mark(',') {
            lexer.next()?;
            match word(lexer)? {
                "function_name" => {
                    name = Some(word(lexer)?);
                    super::argument::offset(lexer)?;
                }
                "inlined_at" => {
                    let at = self.place(lexer, symbols)?;
                    inlined = Some(self.inlined_at(name, at, symbols));
                }
                other => {
                    let what = format!("`{}` is not known in .loc", super::error::excerpt(other));
                    return Err(Error::invalid(lexer.line(), what));
                }
            }
        }
        // Line 0 means that the compiler does not know.
        self.source = (place.1 != 0).then_some((place.0, place.1));
        self.inlined = inlined;
        self.seen.insert(place, inlined);
        Ok(())
    }

    fn place(&mut self, lexer: &mut Lexer<'a>, symbols: &mut Symbols<'a>) -> Result<Place> {
        let file = unsigned(lexer)?;
        let mut number = || {
            u32::try_from(unsigned(lexer)?)
                .map_err(|_| Error::invalid(lexer.line(), "a line number is too large"))
        };
        let (line, column) = (number()?, number()?);
        Ok((self.file_index(file, symbols), line, column))
    }

    fn inlined_at(&mut self, label: Option<&'a str>, at: Place, symbols: &mut Symbols<'a>) -> u32 {
        let within = self.seen.get(&at).copied().flatten();
        let list = &mut symbols.module.inlined;
        let labels = &mut self.labels;
        *self.known.entry((label, at, within)).or_insert_with(|| {
            list.push(Inlined { function: None, at: (at.0, at.1), within });
            labels.push(label);
            index(list.len() - 1)
        })
    }

    /// `.section name { ... }`. Of the texts in it only the names of functions are kept.
    pub(super) fn section(&mut self, lexer: &mut Lexer<'a>) -> Result<()> {
        word(lexer)?;
        expect(lexer, '{')?;
        let mut label = None;
        let mut bytes = Vec::new();
        let mut in_bytes = false;
        loop {
            match lexer.next()? {
                Token::Mark('}') => {
                    self.keep(label, &bytes);
                    return Ok(());
                }
                Token::End => {
                    return Err(Error::invalid(lexer.line(), "a section is never closed"));
                }
                Token::Word(".b8") => in_bytes = true,
                Token::Word(name) => {
                    if lexer.peek()? == Token::Mark(':') {
                        lexer.next()?;
                        self.keep(label, &bytes);
                        label = Some(name);
                        bytes.clear();
                    }
                    in_bytes = false;
                }
                Token::Number(text) if in_bytes && label.is_some() => {
                    bytes.extend(text.parse::<u8>());
                }
                _ => {}
            }
        }
    }

    fn keep(&mut self, label: Option<&'a str>, bytes: &[u8]) {
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        if let Some(label) = label {
            self.texts.insert(label, String::from_utf8_lossy(&bytes[..end]).into_owned());
        }
    }

    /// Writes the names of inlined functions, now that all sections are read; and says of what was inlined from libraries which line of the user's calls
    /// it, now that files have names.
    pub(super) fn finish(self, symbols: &mut Symbols<'a>) {
        let module = &mut symbols.module;
        for (inlined, label) in module.inlined.iter_mut().zip(self.labels) {
            inlined.function = label.and_then(|label| self.texts.get(label).cloned());
        }
        let libraries: Vec<bool> = module.files.iter().map(|file| is_of_library(file)).collect();
        if !libraries.contains(&true) {
            return;
        }
        let of_library = |(file, _): (u32, u32)| libraries.get(file as usize) == Some(&true);
        let mut moved = FxHashMap::default();
        for function in 0..module.functions.len() {
            for at in 0..module.functions[function].code.len() {
                let Instruction { line, inlined, .. } = module.functions[function].code[at];
                let (Some(place), Some(number)) = (line.source, inlined) else { continue };
                if !of_library(place) {
                    continue;
                }
                let chain = module.chain(inlined);
                // What is a library's through and through stays as it is.
                let Some(own) = chain.into_iter().find(|i| !of_library(i.at)) else { continue };
                let (source, within) = (own.at, own.within);
                moved.insert(line.ptx, (place, number));
                let instruction = &mut module.functions[function].code[at];
                instruction.line.source = Some(source);
                instruction.inlined = within;
            }
        }
        for unsupported in &mut module.unsupported {
            if moved.contains_key(&unsupported.line) {
                let mut code = module.functions.iter().flat_map(|f| &f.code);
                let found = code.find(|i| i.line.ptx == unsupported.line);
                unsupported.source = found.and_then(|i| i.line.source);
            }
        }
        module.in_libraries = moved;
    }
}
