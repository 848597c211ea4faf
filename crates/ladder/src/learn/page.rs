//! A lesson as a page.

use super::{Figures, Lesson};
use crate::error::Result;
use core::fmt::Write;

impl Lesson {
    /// The lesson as a page in Markdown; the answer and the solution are folded away.
    ///
    /// # Errors
    /// Those of the interpreter, which finds the number.
    pub fn page(&self) -> Result<String> {
        let Lesson { number, title, read, drawing, question, run, explain, exercise, .. } = self;
        let found = run.count()?;
        let mut out = format!("# {number}. {title}\n\n{read}\n\n");
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "![{}]({})\n\n## Predict\n\n{question}\n\n```sh\nwarpfold learn {number} --predict NUMBER\n```\n\n<details><summary>The number, and why</summary>\n\n{found}. {explain}.\n\n`{}` runs it.\n\n</details>\n\n",
            drawing.title(),
            drawing.path(),
            run.command()
        );
        let _ = write!(
            out,
            "## Write\n\nThe kernel has a hole. `warpfold learn exercise {number} -o my.cu` writes it to a file, and `warpfold learn check {number} my.cu` tries it over every size, with every check on.\n\n```cpp\n{}\n```\n",
            exercise.source.trim_end()
        );
        if !exercise.needs.is_empty() {
            out += "\nOver 10007 elements in blocks of 256 it\n\n";
        }
        for need in exercise.needs {
            let _ = writeln!(out, "- {}", need.told());
        }
        let _ = write!(
            out,
            "\n## Once it is solved\n\n{}\n\n<details><summary>A model solution</summary>\n\n```cpp\n{}\n```\n\n</details>\n",
            self.place(),
            exercise.solution.trim_end()
        );
        Ok(out)
    }

    /// The rung that a solution is, and what that reaches: a sentence of a page, with its marks.
    #[must_use]
    pub fn place(&self) -> String {
        let Some(rung) = self.rung else {
            return "No rung is as slow as this: the ladder begins with `neighbored`.".into();
        };
        match Figures::of(rung) {
            None => format!("It is the rung `{rung}`, which is not measured yet on an H200."),
            Some(figures) => format!(
                "It is the rung `{rung}`: on an H200 it reaches {} (268435459 numbers of type f32, blocks of 256 threads).",
                figures.told()
            ),
        }
    }
}
