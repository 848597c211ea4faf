//! Entries of the catalogue of kernels.

use warpfold_core::DType;

/// By element type, in the order of [`DType::ALL`]: the type in a module's name, which is another one
/// of this size if the kernel asks for no more; empty where there is none.
pub(super) type Elements = [&'static str; DType::ALL.len()];

/// A kernel, as `kernels/catalogue.json` names it: a module for each element type that it
/// serves.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) stem: &'static str,
    pub(super) elements: Elements,
    /// The most threads of a block, by element type.
    pub(super) threads: [u16; DType::ALL.len()],
    /// Blocks that fit a multiprocessor at least, by element type.
    pub(super) blocks: [u8; DType::ALL.len()],
}

/// A kernel for one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// The type in its name.
    pub(super) element: &'static str,
    /// The most threads of a block.
    pub(super) threads: u32,
    /// Blocks that fit a multiprocessor at least.
    pub(super) blocks: u32,
}

impl Entry {
    /// One of the same launches for all of its types.
    pub(super) const fn even(
        stem: &'static str,
        elements: Elements,
        threads: u16,
        blocks: u8,
    ) -> Entry {
        const TYPES: usize = DType::ALL.len();
        Entry { stem, elements, threads: [threads; TYPES], blocks: [blocks; TYPES] }
    }

    /// The kernel for elements of a type, if there is one.
    pub(super) fn module(&self, dtype: DType) -> Option<Module> {
        let place = dtype.known() as usize;
        let element = self.elements[place];
        let (threads, blocks) = (self.threads[place].into(), self.blocks[place].into());
        (!element.is_empty()).then_some(Module { element, threads, blocks })
    }

    /// Its name, and that of its module in the archive.
    pub(super) fn name(&self, dtype: DType) -> Option<String> {
        self.module(dtype).map(|module| format!("{}_{}", self.stem, module.element))
    }
}

#[cfg(test)]
mod tests {
    use super::super::archive;
    use super::super::catalogue::ENTRIES;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn catalogue_and_archive_name_the_same_modules() {
        let all = ENTRIES.iter().flat_map(|entry| DType::ALL.map(|dtype| entry.name(dtype)));
        let mut names: Vec<String> =
            all.flatten().collect::<HashSet<String>>().into_iter().collect();
        names.sort_unstable();
        assert_eq!(names, archive::names());
        // Some of them have a second one, for newer devices.
        let modules = archive::size().0;
        assert!((names.len() + 1..2 * names.len()).contains(&modules), "{modules} modules");
    }

    #[test]
    fn types_are_counted_as_in_core() {
        for (place, dtype) in DType::ALL.into_iter().enumerate() {
            assert_eq!(dtype.known() as usize, place, "{dtype}");
        }
        for entry in ENTRIES {
            for dtype in DType::ALL {
                let Some(module) = entry.module(dtype) else { continue };
                let size = module.element.parse::<DType>().map(DType::size);
                assert_eq!(size, Ok(dtype.size()), "{} of {dtype}", entry.stem);
            }
        }
    }
}
