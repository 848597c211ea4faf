//! Names as the source has them: compilers write those of C++ as the linker knows them, `_Z5scaleIfEvPT_i` for `scale<float>(float*, int)`.

use cpp_demangle::{DemangleOptions, Symbol};
use std::borrow::Cow;

/// A longer name is not worth the time: it can be made to mean one that is longer by far.
const LONGEST: usize = 4096;

/// The name of a function or a variable without what it takes and gives back: `scale<float>`. Any other text is itself.
#[must_use]
pub fn demangled(name: &str) -> Cow<'_, str> {
    read(name, DemangleOptions::new().no_params().no_return_type())
}

/// The same with the types of the parameters, which tell functions of one name apart: `scale<float>(float*, int)`.
#[must_use]
pub fn signature(name: &str) -> Cow<'_, str> {
    read(name, DemangleOptions::new().no_return_type())
}

fn read(name: &str, options: DemangleOptions) -> Cow<'_, str> {
    let mangled = name.starts_with("_Z") && name.len() <= LONGEST;
    let symbol = mangled.then(|| Symbol::new(name).ok()).flatten();
    let text = symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    text.filter(|text| text.len() <= LONGEST).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Of some names, the one that is meant: it itself, what it means, or that without parameters or without the arguments of a template, if only one
/// is called so.
pub(crate) fn find<'a>(
    names: impl Iterator<Item = &'a str> + Clone,
    meant: &str,
) -> Option<&'a str> {
    if let Some(name) = names.clone().find(|&name| name == meant) {
        return Some(name);
    }
    let bare = |name: &str| {
        let name = demangled(name);
        name.split('<').next().unwrap_or_default().to_owned()
    };
    let ways: [&dyn Fn(&str) -> bool; 3] =
        [&|name| signature(name) == meant, &|name| demangled(name) == meant, &|name| {
            bare(name) == meant
        }];
    for way in ways {
        let mut found = names.clone().filter(|&name| name.starts_with("_Z") && way(name));
        if let Some(name) = found.next() {
            return found.next().is_none().then_some(name);
        }
    }
    None
}

/// Names for people to choose from: parameters are told only where two would look the same.
#[must_use]
pub fn list<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<&str> = names.collect();
    let short: Vec<_> = names.iter().map(|name| demangled(name)).collect();
    let twice = |name: &Cow<'_, str>| short.iter().filter(|other| *other == name).count() > 1;
    let each = names.iter().zip(&short);
    each.map(|(name, short)| {
        if twice(short) { signature(name) } else { short.clone() }.into_owned()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (mangled, short, long) in [
            (
                "_Z5scaleIfEvPT_PKS0_S0_i",
                "scale<float>",
                "scale<float>(float*, float const*, float, int)",
            ),
            ("_Z4foldILb0EEvPKiPi", "fold<false>", "fold<false>(int const*, int*)"),
            ("_ZN4mine5boundE", "mine::bound", "mine::bound"),
            ("two_pass", "two_pass", "two_pass"),
            ("_Z", "_Z", "_Z"),
            ("_Z5scale_param_2", "_Z5scale_param_2", "_Z5scale_param_2"),
            ("", "", ""),
        ] {
            assert_eq!((&*demangled(mangled), &*signature(mangled)), (short, long));
        }
        let deep = format!("_Z1f{}i", "P".repeat(1 << 20));
        assert_eq!(demangled(&deep), deep);
    }

    #[test]
    fn a_name_is_found_as_people_write_it() {
        let names =
            ["_Z5scaleIfEvPT_i", "_Z5scaleIdEvPT_i", "_Z3addPfi", "_Z3addPdi", "k", "_Z2k2v"];
        let found = |meant| find(names.into_iter(), meant);
        assert_eq!(found("_Z3addPdi"), Some("_Z3addPdi"));
        assert_eq!(found("scale<float>"), Some("_Z5scaleIfEvPT_i"));
        assert_eq!(found("add(double*, int)"), Some("_Z3addPdi"));
        assert_eq!((found("k"), found("k2")), (Some("k"), Some("_Z2k2v")));
        for not_one in ["scale", "add", "sub", "", "scale<"] {
            assert_eq!(found(not_one), None, "{not_one}");
        }
        let listed = list(names.into_iter());
        assert_eq!(listed[..3], ["scale<float>", "scale<double>", "add(float*, int)"]);
        assert!(listed.iter().all(|name| found(name).is_some()));
    }
}
