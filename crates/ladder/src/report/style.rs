//! Colours, once for light and once for dark, and what marks of charts look like.

/// The colours on a light ground.
const LIGHT: &str = "--c0:#2563a8;--c1:#c2570c;--c2:#1f7a4d;--c3:#a02c6d;--c4:#6b4fbb;--c5:#8a6d00;--c6:#0f7c8a;--c7:#5b6470;\
--ink:#1d2530;--soft:#5b6673;--rule:#d8dee6;--heat:#2563a8;--on-heat:#fff;--mark:#b42318;\
--ground:#fff;--raised:#f5f7fa;--link:#1d5a9e;--good:#1f7a4d";

/// And on a dark one.
const DARK: &str = "--c0:#6ea8ec;--c1:#f2994f;--c2:#58c08c;--c3:#e57cb6;--c4:#a795f2;--c5:#d9b93f;--c6:#4fc3d3;--c7:#a5afbb;\
--ink:#e6ebf1;--soft:#9aa6b4;--rule:#333d4a;--heat:#6ea8ec;--on-heat:#0d1520;--mark:#ff8a7a;\
--ground:#12171e;--raised:#1a212b;--link:#8fc0f7;--good:#58c08c";

const MARKS: &str = include_str!("chart.css");
const PAGE: &str = include_str!("page.css");

/// The style of a drawing that has a file of its own: the reader's preference
/// decides.
pub(super) fn alone() -> String {
    let font = "font:12px/1.3 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif";
    format!(
        "svg{{{LIGHT};{font};background:var(--ground)}}@media (prefers-color-scheme:dark){{svg{{{DARK}}}}}\n{MARKS}"
    )
}

/// The style of the page: the reader's preference decides, unless the page is told
/// otherwise.
pub(super) fn page() -> String {
    format!(
        ":root{{color-scheme:light dark;{LIGHT}}}\n\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{DARK}}}}}\n\
         :root[data-theme=dark]{{color-scheme:dark;{DARK}}}\n\
         :root[data-theme=light]{{color-scheme:light}}\n{MARKS}{PAGE}"
    )
}
